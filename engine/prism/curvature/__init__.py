"""Curvature in prototype space: the Hessian of the losses, its coupling and its conditioning."""
