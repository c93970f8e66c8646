"""Types of the public names, each of which is imported when it is first used."""

from workbench.advising.racing import Race as Race
from workbench.advising.racing import race as race
from workbench.api.advice import Advice as Advice
from workbench.api.advice import advise as advise
from workbench.api.alpha_path import path as path
from workbench.api.blocks import blocks as blocks
from workbench.api.loading import load as load
from workbench.api.panel import lab as lab
from workbench.api.profiling import profile as profile
from workbench.api.results import Comparison as Comparison
from workbench.api.results import Result as Result
from workbench.api.results import compare as compare
from workbench.api.results import open as open
from workbench.api.results import runs as runs
from workbench.api.sweeping import sweep as sweep
from workbench.api.training import train as train
from workbench.bridges.sklearn import FactorizationMachineClassifier as FactorizationMachineClassifier
from workbench.bridges.sklearn import FactorizationMachineRegressor as FactorizationMachineRegressor
from workbench.bridges.sklearn import SparseClassifier as SparseClassifier
from workbench.bridges.sklearn import SparseClassifierCV as SparseClassifierCV
from workbench.bridges.sklearn import SparseRegressor as SparseRegressor
from workbench.data import DataError as DataError
from workbench.data import Dataset as Dataset
from workbench.recommend.recommender import Recommender as Recommender
from workbench.training.trained import load_model as load_model

__version__: str
