"""The core: records, the plan and the loop. It knows no model and no feature by name."""
