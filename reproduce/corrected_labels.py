"""Corrected labels: twenty training images with their noisy, true and corrected labels."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.tables_and_figures.corrected_labels import CorrectedLabelsFigure
from chainer_jo.reproduction.tables_and_figures.table_layouts import NOISE_RATE


def figure(study: Study) -> CorrectedLabelsFigure:
    """Figure of trial 0, at the headline's noise rate or, if the study lacks it, the first rate."""
    rates = study.noise_rates or (NOISE_RATE,)
    rate = NOISE_RATE if NOISE_RATE in rates else rates[0]
    return CorrectedLabelsFigure(10, study.first_step("symmetric", rate, 0), study.loader)


if __name__ == "__main__":
    main(figure, __doc__)
