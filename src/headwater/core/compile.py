"""compile_plan: a learner becomes a plan. The only place that knows every step."""

from __future__ import annotations

from headwater.core.average import Average
from headwater.core.fit_result import FitResult
from headwater.core.learner import Learner
from headwater.core.plan import Plan, Step, find_start, model_for
from headwater.core.policy import FindsStart, Restates
from headwater.core.sequences import SequenceStep, SequenceSweepStep
from headwater.core.shards import ShardStep
from headwater.core.steps import PLAIN_FOLD, BatchStep, SweepStep


def compile_plan(learner: Learner) -> Plan:
    """Choose the step and the function that finds starts, once."""
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
