"""An AWS to test against: moto's server, with what it lacks added (``extension/``)."""
