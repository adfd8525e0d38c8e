"""Pictures of what was learned, and of how it went. Each takes axes and returns them; matplotlib loads when one is drawn."""

from headwater.plotting.arrivals import beam
from headwater.plotting.beliefs import intervals
from headwater.plotting.chains import transitions
from headwater.plotting.gaussians import density, ellipses
from headwater.plotting.images import images
from headwater.plotting.overview import overview
from headwater.plotting.regressions import regressions
from headwater.plotting.residuals import residuals
from headwater.plotting.shared import MOST_ROWS, PALETTE
from headwater.plotting.spectra import spectra, spectrogram
from headwater.plotting.states import states
from headwater.plotting.streams import scores, weights
from headwater.plotting.words import words

__all__ = [
    "MOST_ROWS",
    "PALETTE",
    "beam",
    "density",
    "ellipses",
    "images",
    "intervals",
    "overview",
    "regressions",
    "residuals",
    "scores",
    "spectra",
    "spectrogram",
    "states",
    "transitions",
    "weights",
    "words",
]
