"""When in a step impulses of contacts act: after a share α of it, such that they add no energy (`stepping`).

To lowest order the energy gained is `(α − ½) h λ·J̇v`, so its slope over α is known but for a ratio, which follows from
trials. The first trial has the α of the step before; mostly it suffices. Where none does, the step is halved.
"""
from __future__ import annotations

from ...compiled.entry import entry
from ...compiled.kernel import kernel

TRIALS, LEAST = 4, 0.25    # largest number of shares that are tried, and the smallest of them
STEEPEST = 10.0    # largest ratio of the slope to its estimate
DISTINCT = 100.0   # gains, and differences of them, beyond doubt, in units of the largest gain accepted
# Of a choice (CHOICE,): the share α; (α − ½)/s of a step of s (s), and the ratio, both also from the step before;
# whether (α − ½)/s is fixed, as in the search for an impact; trials so far, and the share and the gain of the last;
# whether energy is gained by the share that was chosen.
SHARE, ASIDE, STEEPER, HELD, TRIED, LAST, GAINED, GAINS, CHOICE = range(9)
GAIN, SLOPE, AIM, MOST, ENERGY = range(5)    # of a trial: see `next_share`


@kernel
def open_choice(choice, s):
    """The first share in a step of s (s)."""
    choice[SHARE], choice[TRIED] = min(max(0.5 + s * choice[ASIDE], LEAST), 1.0 - LEAST), 0.0


@kernel
def next_share(choice, s, energy):
    """Whether to try another share, which is in `choice` then. energy (ENERGY,) of this trial: the gain; its estimated
    slope over the share; the smallest loss to aim at; the largest gain accepted.
    """
    gain, slope, most = energy[GAIN], choice[STEEPER] * energy[SLOPE], energy[MOST]
    if choice[TRIED] > 0.0 and abs(gain - choice[GAINED]) > DISTINCT * most:
        slope = (gain - choice[GAINED]) / (choice[SHARE] - choice[LAST])
        ratio = slope / energy[SLOPE] if energy[SLOPE] != 0.0 else 0.0
        choice[STEEPER] = ratio if 1.0 / STEEPEST < ratio < STEEPEST else 1.0
    in_middle = gain + slope * (0.5 - choice[SHARE])
    better = 0.5    # where a quarter of that gain is lost
    if in_middle > most and slope != 0.0:
        better = min(max(choice[SHARE] - (gain + energy[AIM] + 0.25 * in_middle) / slope, LEAST), 1.0 - LEAST)
    good = -abs(in_middle) - most <= gain <= most
    trial = 0.5 if choice[TRIED] == 0.0 and choice[SHARE] != 0.5 else better
    choice[TRIED] += 1.0
    if not (good or choice[HELD] != 0.0 or choice[TRIED] >= TRIALS or trial == choice[SHARE]):
        choice[LAST], choice[GAINED], choice[SHARE] = choice[SHARE], gain, trial
        return True
    if choice[HELD] == 0.0:
        choice[ASIDE] = (better - 0.5) / s if good else 0.0
        choice[GAINS] = 1.0 if gain > DISTINCT * most else 0.0
    return False


@entry("void(float64[::1], float64)")
def open_choice_entry(choice, s):
    """`open_choice`."""
    open_choice(choice, s)


@entry("boolean(float64[::1], float64, float64[::1])")
def next_share_entry(choice, s, energy):
    """`next_share`."""
    return next_share(choice, s, energy)
