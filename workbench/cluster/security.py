"""Encryption: outside of one machine a cluster is encrypted, or it is refused."""

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, final
from urllib.parse import urlsplit

MADE_BY = (
    "openssl req -x509 -newkey rsa:3072 -nodes -days 30 -subj /CN=workbench -keyout key.pem -out cert.pem",
    "dask scheduler --tls-ca-file cert.pem --tls-cert cert.pem --tls-key key.pem --protocol tls",
)
"""The two commands that make an encrypted cluster; workers and clients get the same two files."""


class OpenClusterError(ValueError):
    """A cluster listens outside of this machine without encryption."""


def is_local(address: str) -> bool:
    """Return whether an address of Dask, such as tcp://127.0.0.1:8786, is reached from this machine alone.

    >>> is_local("tcp://127.0.0.1:8786"), is_local("tcp://10.0.0.7:8786"), is_local("inproc://10.0.0.7/31/1")
    (True, False, True)
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "inproc" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:  # a name
        return False


def check_encrypted(addresses: Sequence[str]) -> None:
    """Raise OpenClusterError if an address can be reached from other machines and is not "tls://".

    Whoever reaches an open scheduler can run programs as its user.
    """
    if wrong := [address for address in addresses if not is_local(address) and urlsplit(address).scheme != "tls"]:
        raise OpenClusterError(
            f"{wrong[0]} can be reached from other machines and is not encrypted; whoever reaches a scheduler can run "
            f"programs as you. Start the cluster with TLS:\n  {MADE_BY[0]}\n  {MADE_BY[1]}"
        )


def check_certificates(address: str, folder: str) -> None:
    """Raise OpenClusterError if the address is "tls://..." and `folder`, that of certificate and key, is ""."""
    if urlsplit(address).scheme == "tls" and not folder:
        raise OpenClusterError(
            "An encrypted cluster lets in whoever shows its certificate and key, and none are named here: set "
            "WORKBENCH_CERTIFICATES to the folder of cert.pem and key.pem, those that its scheduler was started with. "
            f"They are made with:\n  {MADE_BY[0]}"
        )


# The key and certificate of one cluster, made for it by openssl in a folder that only its user may read.

CERTIFICATE, KEY = "cert.pem", "key.pem"


@final
class Certificates(NamedTuple):
    """Files without which nobody may join the cluster; all machines see them by the same path."""

    certificate: str
    key: str


def make_certificates(folder: Path) -> Certificates:
    """Write a new key and certificate, valid for 30 days, into the folder by openssl; return their paths.

    The folder is created and made private (mode 700), files have mode 600. OpenClusterError if openssl is missing or
    fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    found = read_certificates(folder)
    if (program := shutil.which("openssl")) is None:
        raise OpenClusterError(
            "A cluster is encrypted, also on one machine, and there is no openssl here.\nInstall the program openssl."
        )
    asked = ["req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "30", "-subj", "/CN=workbench"]
    files = ["-keyout", found.key, "-out", found.certificate]
    done = subprocess.run([program, *asked, *files], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise OpenClusterError(f"openssl made no certificate: {done.stderr.strip() or done.returncode}.")
    for file in found:
        os.chmod(file, 0o600)
    return found


def read_certificates(folder: str | os.PathLike) -> Certificates:
    """Return the paths of the certificate and the key that `make_certificates` wrote to a folder; nothing is read."""
    return Certificates(str(Path(folder) / CERTIFICATE), str(Path(folder) / KEY))


# Settings of Dask: nothing that samples, restarts or gives up by itself while a training is at work.

PAGES = "127.0.0.1:0"
"""Where Dask shows its own pages: to users of the machine alone, at any port."""

SECONDS_JOIN = 60.0
"""How long a process may take to join its cluster."""


def settings() -> dict[str, Any]:
    """Return Dask settings of schedulers and workers that train: no stealing, no time to live, no profiling.

    Silent workers are handled by `workbench.cluster.team` instead.
    """
    return {
        "distributed.scheduler.worker-ttl": None,
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.limit": "1h",
        "distributed.comm.timeouts.connect": "10s",
    }


def security_of(certificates: str) -> Any:
    """Return the `distributed.Security` of the certificate and key in a folder; None if `certificates` is ""."""
    if not certificates:
        return None
    from distributed import Security

    own = read_certificates(certificates)
    roles = {f"tls_{role}_{kind}": getattr(own, of) for role in ("scheduler", "worker", "client") for kind, of in KINDS}
    return Security(tls_ca_file=own.certificate, require_encryption=True, **roles)


KINDS = (("cert", "certificate"), ("key", "key"))
