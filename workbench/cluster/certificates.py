"""The key and certificate of one cluster, made for it by openssl in a folder that only its user may read."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, final

from workbench.cluster.security import OpenClusterError

CERTIFICATE, KEY = "cert.pem", "key.pem"


@final
class Certificates(NamedTuple):
    """Files without which nobody may join the cluster; all machines see them by the same path."""

    certificate: str
    key: str


def made(folder: Path) -> Certificates:
    """New ones in that folder, valid for 30 days; `OpenClusterError` where openssl makes none."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    found = read(folder)
    if (program := shutil.which("openssl")) is None:
        raise OpenClusterError("A cluster of several machines is encrypted, and there is no openssl here: install it.")
    asked = ["req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "30", "-subj", "/CN=workbench"]
    files = ["-keyout", found.key, "-out", found.certificate]
    done = subprocess.run([program, *asked, *files], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise OpenClusterError(f"openssl made no certificate: {done.stderr.strip() or done.returncode}.")
    os.chmod(found.key, 0o600)
    return found


def read(folder: str | os.PathLike) -> Certificates:
    """Certificates that `made` put there."""
    return Certificates(str(Path(folder) / CERTIFICATE), str(Path(folder) / KEY))
