"""Encryption: outside of one machine a cluster is encrypted, or it is refused."""

import ipaddress
from collections.abc import Sequence
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
