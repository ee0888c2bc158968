"""Configuration of a prototype language model: any decoder configuration plus a bank."""

from dataclasses import asdict
from typing import Any, ClassVar, no_type_check

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, PreTrainedConfig
from transformers.configuration_utils import SubConfigSpec

from engine.config import LossWeights
from engine.errors import ConfigError


MODEL_TYPE = "headwater-prism"


@no_type_check  # its constructor takes any keyword, which a checker of signatures cannot see
@strict
class PrismConfig(PreTrainedConfig):
    """A decoder (`backbone`) and the size, sparsity and loss weights of its prototype bank.

    The loss weights are the ones training aims for; a run may ramp up to them. `base` names the
    weights a retrofit leaves out of its own folder.
    """

    model_type = MODEL_TYPE
    sub_configs_defaults: ClassVar[dict[str, SubConfigSpec]] = {
        "backbone": SubConfigSpec(config_class=AutoConfig, model_type="llama")
    }

    backbone: dict[str, Any] | PreTrainedConfig | None = None
    n_prototypes: int = 2048
    n_active: int = 16
    reconstruction_weight: float = 0.1
    prototype_to_token_weight: float = 0.1
    token_to_prototype_weight: float = 0.1
    cosine_chunk: int = 2048
    base: dict[str, Any] | None = None
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.tie_word_embeddings = bool(getattr(self.backbone, "tie_word_embeddings", False))
        if not 0 < self.n_active <= self.n_prototypes:
            raise ConfigError(
                f"n_active is {self.n_active}; it must lie between 1 and "
                f"n_prototypes ({self.n_prototypes})."
            )
        if self.cosine_chunk < 1:
            raise ConfigError(f"cosine_chunk is {self.cosine_chunk}; it must be 1 or more.")

    @classmethod
    def for_backbone(
        cls, backbone: PreTrainedConfig | dict[str, Any], *, weights: LossWeights, **settings: Any
    ) -> "PrismConfig":
        """Build a configuration around a decoder's own, with the project's loss weights."""
        values = {f"{name}_weight": value for name, value in asdict(weights).items()}
        return cls(backbone=backbone, **values, **settings)

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> PreTrainedConfig:
        """Return the decoder's configuration, which generation and caches read."""
        del decoder, encoder
        return self.decoder

    @property
    def decoder(self) -> PreTrainedConfig:
        """The decoder's configuration as an object."""
        if not isinstance(self.backbone, PreTrainedConfig):
            return self
        return self.backbone

    @property
    def d_model(self) -> int:
        """Width of a state."""
        return int(self.decoder.hidden_size)

    @property
    def loss_weights(self) -> LossWeights:
        """The bank's loss weights as the engine's own dataclass."""
        return LossWeights(
            reconstruction=self.reconstruction_weight,
            prototype_to_token=self.prototype_to_token_weight,
            token_to_prototype=self.token_to_prototype_weight,
        )
