"""A module that stands still while it is being imported."""

import target

result = target.park()
