from . import augment as augment
from . import baselines as baselines
from . import batches as batches
from . import datasets as datasets
from . import metrics as metrics
from . import plot as plot
from .affinity.fuzzy import Fuzzy as Fuzzy
from .affinity.gaussian import Gaussian as Gaussian
from .encoder.mlp import MLP as MLP
from .encoder.model_a import ModelA as ModelA
from .encoder.model_b import ModelB as ModelB
from .encoder.patch_mlp import PatchMLP as PatchMLP
from .encoder.strided import Strided as Strided
from .loss.ce import CE as CE
from .loss.kl import KL as KL
from .model.archive import ModelFileError as ModelFileError
from .model.estimator import DRE as DRE
from .model.estimator import DeepTSNE as DeepTSNE
from .model.estimator import DeepUMAP as DeepUMAP
from .observe.stopping import EarlyStop as EarlyStop
from .optimizer import Optimizer as Optimizer
from .plan.recipe import Recipe as Recipe
from .plan.schedule import Schedule as Schedule
from .plan.schedule import Stage as Stage
from .training.loop import DivergedError as DivergedError

__version__: str
