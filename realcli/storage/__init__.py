"""Object store port: S3 or a local directory. The one part of realcli that opens connections."""
