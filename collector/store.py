"""Where evidence lies: a local folder (or file), or S3. Listing, fetching, and errors that say what to do.

Nothing here knows a format. Retries are botocore's; credentials come from AWS's own chain only.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError, ProfileNotFound
from botocore.exceptions import ConnectionError as NoConnection

from collector.source import CollectError, SourceSettings, StoredObject

if TYPE_CHECKING:
    from typing import Any

BLOCK = 1024 * 1024
THREADS = 16


class Store(Protocol):
    """One location. Keys are relative to it, `/` between parts."""

    @property
    def place(self) -> str:
        """The location as a person writes it."""

    @property
    def is_remote(self) -> bool: ...

    def list(self, under: str = "") -> Sequence[StoredObject]:
        """Every object below `under`, ordered by key; raises CollectError when the location cannot be read."""

    def read(self, found: StoredObject) -> bytes:
        """One small object, whole; raises CollectError when it is gone or has changed since it was listed."""

    def fetch(self, found: Sequence[StoredObject], folder: Path) -> Sequence[Path]:
        """Files in the same order, complete; a local file is read in place."""


def open_store(settings: SourceSettings) -> Store:
    """The store that a source's location names."""
    if settings.location.startswith("s3://"):
        bucket, _, prefix = settings.location.removeprefix("s3://").partition("/")
        return S3Store(bucket, prefix.rstrip("/"), settings.region, settings.profile, settings.endpoint_url)
    return LocalStore(Path(settings.location))


@dataclass(frozen=True)
class LocalStore:
    """A folder, or one file; files are read where they are."""

    root: Path
    is_remote: bool = False

    @property
    def place(self) -> str:
        return str(self.root)

    def _path(self, key: str) -> Path:
        return self.root if key == self.root.name and self.root.is_file() else self.root / key

    def list(self, under: str = "") -> Sequence[StoredObject]:
        if self.root.is_file():
            return [_stored(self.root.name, self.root.stat())]
        top = self.root / under
        if not self.root.is_dir():
            raise CollectError(
                "no such file or folder", self.place, "Correct the source's `location` (relative to the config file)"
            )
        try:
            return sorted(_walk(top, under.strip("/")), key=lambda found: found.key) if top.is_dir() else []
        except PermissionError as error:
            raise CollectError(
                "may not be read", str(error.filename), "Give the user that runs inferledger the right to read it"
            ) from error

    def read(self, found: StoredObject) -> bytes:
        try:
            content = self._path(found.key).read_bytes()
        except OSError as error:
            raise self._gone(found, error) from error
        if len(content) != found.size:
            raise _changed(f"{self.place}/{found.key}")
        return content

    def fetch(self, found: Sequence[StoredObject], folder: Path) -> Sequence[Path]:
        paths = [self._path(each.key) for each in found]
        for each, path in zip(found, paths, strict=True):
            try:
                now = _stored(each.key, path.stat())
                os.close(os.open(path, os.O_RDONLY))
            except OSError as error:
                raise self._gone(each, error) from error
            if now.version != each.version:
                raise _changed(str(path))
        return paths

    def _gone(self, found: StoredObject, error: OSError) -> CollectError:
        if isinstance(error, PermissionError):
            remedy = "Give the user that runs inferledger the right to read it"
        else:
            remedy = "It was there when listed; collect again, and check what removes files"
        return CollectError(f"cannot be read ({error.strerror})", str(self._path(found.key)), remedy)


def _stored(key: str, stat: os.stat_result) -> StoredObject:
    return StoredObject(
        key, f"{stat.st_size}-{stat.st_mtime_ns}", stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC)
    )


def _walk(folder: Path, prefix: str) -> Iterator[StoredObject]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            key = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir():
                yield from _walk(folder / entry.name, key)
            else:
                yield _stored(key, entry.stat())


def _changed(where: str) -> CollectError:
    return CollectError(
        "changed while it was being read", where, "Nothing of it was loaded; the next run reads it anew"
    )


class S3Store:
    """A bucket and prefix; S3 or anything that speaks it (`endpoint_url`)."""

    is_remote = True

    def __init__(
        self, bucket: str, prefix: str, region: str | None, profile: str | None, endpoint_url: str | None
    ) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._endpoint_url = endpoint_url
        self._region = region
        self._profile = profile
        self._connected: Any = None

    @property
    def place(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def _client(self) -> "Any":
        if self._connected is None:
            with self._explained(self.place):
                session = boto3.Session(profile_name=self._profile, region_name=self._region)
                self._connected = session.client(
                    "s3",
                    endpoint_url=self._endpoint_url,
                    config=Config(
                        retries={"mode": "standard", "total_max_attempts": 4},
                        connect_timeout=5,
                        read_timeout=60,
                        max_pool_connections=THREADS,
                        s3={"addressing_style": "path"} if self._endpoint_url else {},
                    ),
                )
        return self._connected

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def list(self, under: str = "") -> Sequence[StoredObject]:
        prefix = self._key(under) if under else (f"{self.prefix}/" if self.prefix else "")
        cut = len(self.prefix) + 1 if self.prefix else 0
        with self._explained(self.place):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
            return [
                StoredObject(each["Key"][cut:], each["ETag"].strip('"'), each["Size"], each["LastModified"])
                for page in pages
                for each in page.get("Contents", ())
                if not each["Key"].endswith("/")
            ]

    def read(self, found: StoredObject) -> bytes:
        where = f"{self.place}/{found.key}"
        with self._explained(where):
            answer = self._client.get_object(Bucket=self.bucket, Key=self._key(found.key), IfMatch=f'"{found.version}"')
            content: bytes = answer["Body"].read()
        if len(content) != found.size:
            raise _changed(where)
        return content

    def fetch(self, found: Sequence[StoredObject], folder: Path) -> Sequence[Path]:
        paths = [folder / f"{number:06d}-{each.key.rsplit('/', 1)[-1]}" for number, each in enumerate(found)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._download, found, paths))
        return paths

    def _download(self, found: StoredObject, path: Path) -> None:
        where = f"{self.place}/{found.key}"
        with self._explained(where):
            answer = self._client.get_object(Bucket=self.bucket, Key=self._key(found.key), IfMatch=f'"{found.version}"')
            with path.open("wb") as file:
                for block in answer["Body"].iter_chunks(BLOCK):
                    file.write(block)
        if path.stat().st_size != found.size:
            raise CollectError(
                f"came incomplete: {path.stat().st_size:,} of {found.size:,} bytes",
                where,
                "Nothing of it was loaded; the next run reads it anew",
            )

    @contextmanager
    def _explained(self, where: str) -> Iterator[None]:
        """Turn AWS's errors into what is wrong and what to do; the message never holds a body or a key id."""
        try:
            yield
        except ClientError as error:
            raise self._refused(error, where) from None
        except ProfileNotFound:
            raise CollectError(
                f"the AWS profile `{self._profile}` does not exist",
                where,
                f"Correct `profile` or run `aws configure --profile {self._profile}`",
            ) from None
        except NoCredentialsError:
            raise CollectError(
                "no AWS credentials were found",
                where,
                "Set AWS_PROFILE, run `aws sso login`, or give the machine a "
                "role; InferLedger reads AWS's own credential chain only",
            ) from None
        except (HTTPClientError, NoConnection) as error:
            raise CollectError(
                f"the store cannot be reached ({type(error).__name__})",
                self._endpoint_url or where,
                "Check the network, and `endpoint_url` and `region` of the source; what is loaded stays as it is",
            ) from None
        except BotoCoreError as error:
            raise CollectError(
                f"AWS's client refuses ({type(error).__name__})",
                where,
                "Check `region`, `profile` and `endpoint_url` "
                "of the source and AWS's configuration (`aws sts get-caller-identity` must work)",
            ) from None

    def _refused(self, error: ClientError, where: str) -> CollectError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        what, remedy = (
            _REFUSALS.get(code)
            or _REFUSALS.get(str(status))
            or (
                f"the store answers {code or status}",
                "Try `aws s3 ls` with the same settings; what is loaded stays as it is",
            )
        )
        return CollectError(
            what.format(bucket=self.bucket), where, remedy.format(bucket=self.bucket, prefix=self.prefix)
        )


_EXPIRED = (
    "the AWS credentials have expired",
    "Renew them (`aws sso login`, or a new session token) and collect again; what is loaded stays as it is",
)
_DENIED = (
    "access is denied",
    "Give the role s3:ListBucket on {bucket} and s3:GetObject on its objects (and kms:Decrypt if it is encrypted with "
    "a key of yours)",
)
_INVALID = (
    "the AWS credentials are not valid for this store",
    "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_PROFILE (`aws sts get-caller-identity` must work)",
)
_NO_BUCKET = ("there is no bucket `{bucket}`", "Correct the source's `location`, or its `endpoint_url`")
_OTHER_REGION = ("the bucket is in another region", "Set the source's `region` to the bucket's region")
_MOVED = ("changed while it was being read", "Nothing of it was loaded; the next run reads it anew")
_GONE = ("is not there any more", "Collect again; if it stays away, look for a lifecycle rule that deletes it")
_REFUSALS: dict[str, tuple[str, str]] = {
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "RequestExpired": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "InvalidAccessKeyId": _INVALID,
    "SignatureDoesNotMatch": _INVALID,
    "InvalidToken": _INVALID,
    "AccessDenied": _DENIED,
    "403": _DENIED,
    "NoSuchBucket": _NO_BUCKET,
    "PermanentRedirect": _OTHER_REGION,
    "AuthorizationHeaderMalformed": _OTHER_REGION,
    "301": _OTHER_REGION,
    "PreconditionFailed": _MOVED,
    "412": _MOVED,
    "NoSuchKey": _GONE,
    "404": _GONE,
    "RequestTimeTooSkewed": (
        "this machine's clock is wrong by more than 15 minutes",
        "Set the clock (NTP) and collect again",
    ),
    "SlowDown": ("the store asks to slow down", "Collect again later; what is loaded stays as it is"),
}
