"""`PrismForCausalLM`: any decoder of transformers with a bank of prototypes on its last state."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, PreTrainedModel
from transformers.cache_utils import Cache
from transformers.utils import ModelOutput

from engine.config import LossWeights
from engine.errors import UnsupportedModel
from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.configuration import MODEL_TYPE, PrismConfig
from engine.prism.losses import bank_losses, residual_share
from engine.prism.suppression import suppress_states


NO_WEIGHTS = LossWeights(reconstruction=0.0, prototype_to_token=0.0, token_to_prototype=0.0)
"""With these the bank's losses are not computed at all: the cost is that of the dense model."""


@dataclass
class PrismOutput(ModelOutput):
    """What a forward pass returns; fields that were not asked for are None.

    loss: cross-entropy (nats per token) plus the weighted bank losses.
    loss_terms: `cross_entropy` and, where computed, the unweighted `reconstruction`,
        `prototype_to_token` and `token_to_prototype`; all detached.
    logits: W z of the kept positions, suppressed where asked.
    cache: keys and values for the next step of generation.
    states: z of the kept positions, before any suppression.
    prototype_activations, prototype_indices: the k active prototypes of each kept position.
    residual_share: |z - zhat|^2 / |z|^2 of each kept position.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    cache: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    loss_terms: dict[str, Tensor] | None = None
    states: Tensor | None = None
    prototype_activations: Tensor | None = None
    prototype_indices: Tensor | None = None
    residual_share: Tensor | None = None


class PrismForCausalLM(PreTrainedModel, GenerationMixin):
    """A causal LM whose logits W z split into prototype slices and a residual slice.

    The state z is the input of the LM head, after the final norm. The emitted logits are W z, as
    the decoder alone would give them; the bank explains z and never moves a logit unless
    prototypes are suppressed.

    Attributes:
        backbone: the decoder with its LM head.
        prototypes: the bank, [n_prototypes, d_model], un-normalised.
        loss_weights: weights of the bank's losses; may be replaced at any step of a training.
    """

    config: PrismConfig
    config_class = PrismConfig
    base_model_prefix = "backbone"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: PrismConfig) -> None:
        super().__init__(config)
        self.backbone = AutoModelForCausalLM.from_config(config.decoder)
        self.prototypes = nn.Parameter(torch.empty(config.n_prototypes, config.d_model))
        self.loss_weights = config.loss_weights
        check_head(self.backbone)
        self.post_init()

    @classmethod
    def around(cls, backbone: PreTrainedModel, config: PrismConfig) -> "PrismForCausalLM":
        """Wrap an existing causal LM; its weights are shared, not copied, and stay as they are."""
        with torch.device("meta"):
            model = cls(config)
        model.backbone = backbone
        prototypes = torch.empty(config.n_prototypes, config.d_model, device=backbone.device)
        nn.init.normal_(prototypes, std=config.d_model**-0.5)
        model.prototypes = nn.Parameter(prototypes)
        if backbone.can_generate():
            model.generation_config = backbone.generation_config
        return model.train(backbone.training)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise the bank with directions that are uniform and lengths near 1."""
        if module is self:
            nn.init.normal_(self.prototypes, std=self.config.d_model**-0.5)
        else:
            super()._init_weights(module)

    def get_input_embeddings(self) -> nn.Module:
        """Return the decoder's token embedding."""
        return self.backbone.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the decoder's token embedding."""
        self.backbone.set_input_embeddings(value)

    def get_output_embeddings(self) -> nn.Module:
        """Return the LM head W."""
        return self.backbone.get_output_embeddings()

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the LM head W."""
        self.backbone.set_output_embeddings(new_embeddings)

    @property
    def logit_factor(self) -> float:
        """Constant the decoder multiplies W z by; 1 for most architectures."""
        return logit_factor(self.backbone)

    def lm_head(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Logits of states: W z (plus the head's bias and times its factor, where it has them)."""
        logits = self.get_output_embeddings()(states)
        factor = self.logit_factor
        return logits if factor == 1.0 else logits * factor

    def forward(
        self,
        input_ids: Int[Tensor, "batch pos"] | None = None,
        attention_mask: Tensor | dict[str, Tensor] | None = None,
        position_ids: Int[Tensor, "batch pos"] | None = None,
        cache: Cache | None = None,
        inputs_embeds: Float[Tensor, "batch pos d_model"] | None = None,
        labels: Int[Tensor, "batch pos"] | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Int[Tensor, " kept"] = 0,
        shift_labels: Int[Tensor, "batch pos"] | None = None,
        weights: LossWeights | None = None,
        suppressed: Bool[Tensor, " prototypes"] | None = None,
        strength: float | Float[Tensor, ""] = 1.0,
        return_prototypes: bool = False,
        **kwargs: Any,
    ) -> PrismOutput:
        """Run the decoder, and the bank as far as something was asked of it.

        Args:
            input_ids: token ids; `inputs_embeds` may take their place.
            attention_mask: 0 at padding, which counts in no loss.
            position_ids: positions, where they are not 0, 1, 2 ...
            cache: keys and values of earlier positions (also taken as `past_key_values`).
            inputs_embeds: embeddings in place of `input_ids`.
            labels: the input's own tokens, which the loss shifts; -100 counts in no loss.
            use_cache: return a cache.
            logits_to_keep: logits of the last so many positions only (0: all), or of these.
            shift_labels: the next token of each position, where the caller has shifted already.
            weights: weights of the bank's losses in this pass; None takes `loss_weights`.
            suppressed: True at prototypes to switch off.
            strength: share of their slices taken out, 0 to 1.
            return_prototypes: also return states, active prototypes and residual share.
            **kwargs: handed to the decoder.
        """
        cache = kwargs.pop("past_key_values", None) if cache is None else cache
        outputs = self.backbone.base_model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            cache=cache,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            **kwargs,
        )
        states = keep_positions(outputs.last_hidden_state, logits_to_keep)
        head_input, asked = self._ask_bank(states, suppressed, strength, return_prototypes)
        logits = self.lm_head(head_input)
        loss, terms = self._losses(logits, states, labels, shift_labels, attention_mask, weights)
        return PrismOutput(
            loss=loss,
            logits=logits,
            cache=outputs.get("cache"),
            hidden_states=outputs.get("hidden_states"),
            attentions=outputs.get("attentions"),
            loss_terms=terms,
            **asked,
        )

    def _ask_bank(
        self,
        states: Float[Tensor, "batch pos d_model"],
        suppressed: Bool[Tensor, " prototypes"] | None,
        strength: float | Float[Tensor, ""],
        return_prototypes: bool,
    ) -> tuple[Float[Tensor, "batch pos d_model"], dict[str, Tensor]]:
        """Input of the head, and the fields of `PrismOutput` that were asked for."""
        if suppressed is None and not return_prototypes:
            return states, {}
        activations, indices = self.explain(states)
        head_input = states
        if suppressed is not None:
            head_input = suppress_states(
                states, activations, indices, self.prototypes, suppressed, strength
            )
        if not return_prototypes:
            return head_input, {}
        rebuilt = reconstruct(activations, indices, self.prototypes)
        return head_input, {
            "states": states,
            "prototype_activations": activations,
            "prototype_indices": indices,
            "residual_share": residual_share(states, rebuilt),
        }

    def explain(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> tuple[Float[Tensor, "*batch k"], Int[Tensor, "*batch k"]]:
        """Activations of the active prototypes of each state, falling, and their numbers."""
        config = self.config
        return prototype_activations(states, self.prototypes, config.n_active, config.cosine_chunk)

    def _losses(
        self,
        logits: Tensor,
        states: Tensor,
        labels: Tensor | None,
        shift_labels: Tensor | None,
        attention_mask: Tensor | dict[str, Tensor] | None,
        weights: LossWeights | None,
    ) -> tuple[Tensor | None, dict[str, Tensor] | None]:
        """Cross-entropy plus the weighted bank losses, and each term; None without labels."""
        if labels is None and shift_labels is None:
            return None, None
        weights = weights or self.loss_weights
        loss = self.backbone.loss_function(
            logits=logits,
            labels=labels,
            vocab_size=logits.shape[-1],
            shift_labels=None if shift_labels is None else shift_labels.contiguous(),
        )
        terms = {"cross_entropy": loss.detach()}
        if weights == NO_WEIGHTS:
            return loss, terms
        config = self.config
        bank = bank_losses(
            real_tokens(states, attention_mask),
            self.prototypes,
            config.n_active,
            config.cosine_chunk,
        )
        terms["reconstruction"] = bank.reconstruction.detach()
        terms["prototype_to_token"] = bank.prototype_to_token.detach()
        terms["token_to_prototype"] = bank.token_to_prototype.detach()
        return loss + bank.total(weights), terms


def keep_positions(
    states: Float[Tensor, "batch pos d_model"], kept: int | Int[Tensor, " kept"]
) -> Float[Tensor, "batch kept_pos d_model"]:
    """Return the last `kept` positions (0: all), or the positions that `kept` lists."""
    if isinstance(kept, int):
        return states[:, -kept:] if kept else states
    return states[:, kept]


def real_tokens(
    states: Float[Tensor, "batch pos d_model"], attention_mask: Tensor | dict[str, Tensor] | None
) -> Float[Tensor, "tokens d_model"]:
    """States of all positions that are not padding, flattened."""
    if not isinstance(attention_mask, Tensor) or attention_mask.ndim != 2:
        return states.flatten(0, 1)
    mask = attention_mask[:, -states.shape[1] :].bool()
    return states.flatten(0, 1) if bool(mask.all()) else states[mask]


def logit_factor(backbone: PreTrainedModel) -> float:
    """Constant a decoder multiplies its head's output by (Cohere), or 1 / its divisor (Granite)."""
    config = backbone.config.get_text_config()
    scale = getattr(config, "logit_scale", None)
    if scale is not None:
        return float(scale)
    divisor = getattr(config, "logits_scaling", None)
    return 1.0 if divisor is None else 1.0 / float(divisor)


def check_head(backbone: PreTrainedModel) -> None:
    """Refuse a decoder whose logits are not linear in its last state."""
    config = backbone.config.get_text_config()
    name = type(backbone).__name__
    if getattr(config, "final_logit_softcapping", None):
        raise UnsupportedModel(
            f"{name} squashes its logits (final_logit_softcapping "
            f"{config.final_logit_softcapping}), so they do not add up from slices; "
            "choose a decoder with a linear head."
        )
    if not isinstance(backbone.get_output_embeddings(), nn.Linear):
        raise UnsupportedModel(
            f"{name} has no linear LM head; choose a decoder-only causal language model."
        )


@torch.no_grad()
def check_exact(model: PrismForCausalLM) -> None:
    """Refuse a decoder whose own logits differ in one bit from those of the prototype model."""
    vocab = int(model.config.decoder.vocab_size)
    ids = (torch.arange(6, device=model.device) * 7919 % vocab)[None]
    own, ours = model.backbone(input_ids=ids).logits, model(input_ids=ids).logits
    if own.shape != ours.shape or not torch.equal(own, ours):
        raise UnsupportedModel(
            f"{type(model.backbone).__name__} does more than W z after its final norm, so its "
            "logits would not be kept exactly; choose a decoder with a plain linear head."
        )


AutoConfig.register(MODEL_TYPE, PrismConfig, exist_ok=True)
AutoModelForCausalLM.register(PrismConfig, PrismForCausalLM, exist_ok=True)
