"""Sentences of the Curvature page."""

CURVATURE = "How much prototypes lean on each other, and what clustering does to it."
CURVATURE_HOW = """
**The Hessian** says how the losses bend when prototypes move. Activations, and which token is
nearest to which prototype, are held fixed. It is K·d × K·d; the page shows the K × K matrix that is
left when each block is averaged over the d directions of a prototype.

**Terms.** Reconstruction couples prototypes that are active together, exactly in proportion to
their *co-usage* Σ a_i a_j ÷ ‖z‖². Clustering (R1, R2) touches one prototype at a time: it adds to
the diagonal alone. Cross-entropy bends the bank only if the residual is held fixed, as attribution
does; as trained, it gives the bank no curvature at all.

**Coupling** is the off-diagonal share of the absolute mass: 0 when no prototype shares a token with
another. **Condition number** is the largest over the smallest eigenvalue after the stated damping;
1 is best. **Participation** counts the directions over which curvature is spread, of K.

**Fair comparison.** Under its own weights a bank with heavier clustering has a heavier diagonal by
arithmetic alone. *Weights 1 · 1 · 1* puts every arm under the same losses, *co-usage alone* leaves
the losses out.

**Not bought by collapse.** States that shrink into a cone are easy to cover. So loss and spread
stand below, against the dense arm of the same seed.
"""
TERMS = {
    "bank-common": "Bank's losses, weights 1 · 1 · 1",
    "bank": "Bank's losses, own weights",
    "reconstruction": "Reconstruction alone",
    "clustering": "Clustering alone",
    "cousage": "Co-usage alone",
    "cross-entropy": "Cross-entropy, residual fixed",
}
"""Terms of the Hessian in the words of the page; the first is shown on opening."""
TERM_HELP = "Which part of the Hessian the figures above and the curves are of."
NO_CURVATURE = "The curvature of this run has not been measured yet."
NO_ARMS = (
    "This run has no arms over clustering strength. Train some that differ in clustering weight "
    "alone, then measure them; `RUN` is the run they started from."
)
ARMS_COMMANDS = (
    "headwater study tradeoff --run RUN --trunk RUN --weights 0,0.1,0.5,1.5,5\n"
    "headwater curvature --run {run} --arms 'RUN-arm-*'"
)
NO_CATEGORIES = "Co-usage by label needs the labels of an index."
NO_PAIRS = "No two prototypes were active together on enough tokens to be compared."
COUPLING = "Off-diagonal share of the absolute mass of the K × K matrix; 0: independent."
NORMALISED = "The same after dividing by √(M_ii M_jj), so that often-used prototypes do not rule."
BLOCKS = "Share of the squared Frobenius norm of the whole Hessian that lies on its block diagonal."
CONDITION = "(Largest + damping) ÷ (smallest + damping) eigenvalue; 1 is best."
SCALED = "The same after a diagonal preconditioner: what only the full matrix can mend."
PARTICIPATION = "(Σ λ)² ÷ Σ λ²: over how many directions the curvature is spread."
ISOTROPIC = "Share of the Hessian's squared norm that the K × K matrix keeps; 100 %: it is exact."
TOKENS = "Training tokens the Hessian was summed over."
AGAINST_CHANCE, SHARE = "Against chance", "Share"
VIEW_HELP = (
    "Share: of all co-usage between different prototypes. Against chance: that share over the one "
    "it would have if every prototype met every other in proportion to how active it is."
)
PAIR_COSINE = "C_ij ÷ √(C_ii C_jj): 1 if the two are always active together, in proportion."
PAIRS = "Pairs that are used together most, for how often each is used"
