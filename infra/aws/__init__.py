"""AWS through boto3: sessions, state backend, preflight, images, tunnels. boto3 is imported only
below this package."""
