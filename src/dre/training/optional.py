"""Optional stages: judged at their end, without labels, and undone if they have not improved the map."""

from __future__ import annotations

import math

from dre.training.events import StageEnded, StageUndone
from dre.training.run import Run
from dre.training.trust import sample_trust

TRUST_LOSS = 0.005  # of the trustworthiness: an optional stage that costs more is undone. Two seeds differ by less
LOSS_GAIN = 0.05  # of the first stage's loss: an optional stage on neighborhoods that are hardly easier to draw is undone


def judge(run: Run) -> StageEnded | StageUndone:
    """Keep the stage that has just ended, or put back the weights from before it and end the fit."""
    weights = run.weights()
    features = run.learner.features(run.learner.first_source)  # what the network reads, whatever its weights are
    after = sample_trust(features, run.learner.embedding())
    run.encoder.load_state_dict(run.start_weights)
    before = sample_trust(features, run.learner.embedding())
    if after < before - TRUST_LOSS or not _is_easier(run):
        run.resume_at = (len(run.recipe.schedule), 0)
        run.end_fit()
        return StageUndone(run, (before, after), _losses(run))
    run.encoder.load_state_dict(weights)
    return StageEnded(run, weights, (before, after))


def _is_easier(run: Run) -> bool:
    """Whether the network draws these neighborhoods better than those of the first stage, where the two can be compared."""
    first, now = run.recipe.schedule[0], run.current_stage
    if (first.loss, first.against, first.affinity) != (now.loss, now.against, now.affinity):
        return True
    before, after = _losses(run)
    return not after > (1 - LOSS_GAIN) * before  # NaN: there is nothing to compare


def _losses(run: Run) -> tuple[float, float]:
    """Loss of the first stage and of this one, each in its last epoch; NaN for a stage without any."""
    return run.losses.get(0, math.nan), run.losses.get(run.stage, math.nan)
