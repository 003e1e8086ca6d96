"""The motion of M §6.2: cosines, from the identification of the robot by Gaz et al. (RA-L 2019)."""

import numpy as np

AMPLITUDE = np.array([-1.2943753211777664, 0.7175341454355011, -0.5691380764966176, 0.5848944158627155,
                      1.6216297151633214, -0.9187855709752027, 0.4217605991935227])
FREQUENCY = np.array([1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207,
                      1.4183262544423447, 2.285625793808507, 5.927533308659986])


def motion(instants):
    """q, v, a, jerk, snap (N, 7) each at these instants (s)."""
    phase = np.multiply.outer(instants, FREQUENCY)
    return [AMPLITUDE * FREQUENCY**k * np.cos(phase + k * np.pi / 2) for k in range(5)]
