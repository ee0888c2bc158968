"""What must also hold on a CUDA device; `make gpu-check` runs these, then the XL shape's speed."""

import dataclasses

import pytest
import torch

from engine.config import LossWeights, TrainConfig
from engine.prism.activation import prototype_activations
from engine.prism.checkpoints import load_prism
from engine.prism.losses import bank_losses
from engine.prism.training import TrainingData, make_trainer
from tests.engine.prism.test_training import PlantedStream, config
from tests.engine.tiny_models import save_prism


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is visible"),
]
TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 67, 24, 37, 5


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_activations_on_cuda_equal_those_on_the_cpu():
    """Float32, TF32 off as PyTorch leaves it: the same prototypes, activations to 1e-5."""
    states, bank = drawn(TOKENS, D_MODEL), drawn(PROTOTYPES, D_MODEL)
    activations, indices = prototype_activations(states, bank, ACTIVE)
    there, where = prototype_activations(states.cuda(), bank.cuda(), ACTIVE)
    assert torch.equal(where.cpu(), indices)
    torch.testing.assert_close(there.cpu(), activations, rtol=0, atol=1e-5)


def test_losses_and_gradients_on_cuda_equal_those_on_the_cpu():
    """One step on either device must mean the same."""
    found = {}
    for device in ("cpu", "cuda"):
        states = drawn(TOKENS, D_MODEL).to(device).requires_grad_()
        bank = drawn(PROTOTYPES, D_MODEL).to(device).requires_grad_()
        total = bank_losses(states, bank, ACTIVE).total(LossWeights())
        total.backward()
        assert states.grad is not None
        assert bank.grad is not None
        found[device] = (total.detach().cpu(), states.grad.cpu(), bank.grad.cpu())
    torch.testing.assert_close(found["cuda"], found["cpu"], rtol=1e-4, atol=1e-6)


def test_a_run_in_bfloat16_learns_and_resumes(tmp_path):
    """Mixed precision: the loss falls, and a resumed run has the losses of an unbroken one."""
    settings: TrainConfig = dataclasses.replace(config(), device="cuda", steps=30)

    def run(folder, steps):
        stream = PlantedStream()
        data = TrainingData(stream, {"planted": stream.batch(999)}, end_of_text=0)
        trainer = make_trainer(settings, data, folder)
        trainer.run(lambda items, **_: (step for step in items if step < steps))
        return [row["cross_entropy"] for row in trainer.log]

    whole = run(tmp_path / "whole", 30)
    run(tmp_path / "cut", 8)
    resumed = run(tmp_path / "cut", 30)
    assert whole[-1] < whole[0]
    assert resumed == pytest.approx(whole, rel=1e-2)


def test_suppressed_generation_runs_on_cuda(tmp_path):
    """With nothing suppressed the logits are the decoder's own, there as here."""
    model, _ = load_prism(save_prism(tmp_path / "model"), device="cuda")
    prompt = torch.arange(1, 8, device="cuda")[None]
    none = torch.zeros(model.config.n_prototypes, dtype=torch.bool, device="cuda")
    with torch.no_grad():
        plain = model(input_ids=prompt).logits
        assert torch.equal(model(input_ids=prompt, suppressed=none).logits, plain)
        every = model(input_ids=prompt, suppressed=~none).logits
    assert not torch.equal(every, plain)
    made = model.generate(prompt, suppressed=~none, max_new_tokens=3, do_sample=False)
    assert made.shape == (1, 10)
