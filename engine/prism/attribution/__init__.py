"""Attribution from cached statistics: which training sequences lower the loss of a query."""
