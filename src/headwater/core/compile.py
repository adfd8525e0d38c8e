"""compile_plan: a learner becomes a plan. The only place that knows every step."""

from __future__ import annotations

from headwater.core.average import Average
from headwater.core.batch import Batch
from headwater.core.contracts import Model, Start, StartSettings
from headwater.core.fit_result import FitResult
from headwater.core.learner import Learner
from headwater.core.plan import Plan, Step
from headwater.core.policy import FindsStart, Restates
from headwater.core.sequences import SequenceStep, SequenceSweepStep
from headwater.core.shards import ShardStep
from headwater.core.statistics import Statistics
from headwater.core.steps import PLAIN_FOLD, BatchStep, SweepStep


def compile_plan(learner: Learner) -> Plan:
    """Choose the step, and whoever finds starts, once."""
    policies = (*learner.policies, Average(), FitResult())
    starts = next((policy for policy in policies if isinstance(policy, FindsStart)), None)

    def plan_with(step: Step) -> Plan:
        return Plan(
            learner,
            step,
            PLAIN_FOLD,
            policies,
            find_start=find_start if starts is None else starts.find_start,
            model_for=model_for if starts is None else starts.model_for,
            restates=next((policy for policy in policies if isinstance(policy, Restates)), None),
        )

    sweeps = plan_with(BatchStep()).sweeps
    step: Step = BatchStep()
    if learner.model.chained:
        step = SequenceSweepStep() if sweeps else SequenceStep()
    elif sweeps:
        step = SweepStep()
    return plan_with(ShardStep(step, learner.shards) if learner.shards > 1 else step)


def find_start(plan: Plan, batch: Batch, key: int, settings: StartSettings) -> Start:
    """Find a start of the model on these rows."""
    return plan.model.start(batch, key, settings, plan.n_threads)


def model_for(plan: Plan, statistics: Statistics) -> Model:
    """Return the model that has these statistics: the one of the plan."""
    return plan.model
