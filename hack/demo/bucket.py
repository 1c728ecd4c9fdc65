"""bucket.py ENDPOINT BUCKET: waits until the S3 API takes a write, making the bucket if it is missing."""

import sys
import time

import boto3
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError

LIMIT_SECONDS = 60


def main(endpoint: str, bucket: str) -> None:
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)
    until = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            if bucket not in [b["Name"] for b in s3.list_buckets()["Buckets"]]:
                s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=".ready", Body=b"")
            return
        except (BotoCoreError, ClientError) as error:
            if time.monotonic() > until:
                sys.exit(f"bucket {bucket} at {endpoint} takes no write after {LIMIT_SECONDS} s: {error}")
            time.sleep(0.5)


main(*sys.argv[1:])
