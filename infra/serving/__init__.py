"""Engine adapters: deployment -> launch plan, metrics text -> acceptance record."""
