"""Settings of Dask: nothing that samples, restarts or gives up by itself while a training is at work."""

from typing import Any

from workbench.cluster import security

PAGES = "127.0.0.1:0"
"""Where Dask shows its own pages: to users of the machine alone, at any port."""

SECONDS_JOIN = 60.0
"""How long a process may take to join its cluster."""


def settings() -> dict[str, Any]:
    """Return the settings of schedulers and workers that train.

    Who is silent is looked after by `workbench.cluster.team`.
    """
    return {
        "distributed.scheduler.worker-ttl": None,
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.limit": "1h",
        "distributed.comm.timeouts.connect": "10s",
    }


def security_of(certificates: str) -> Any:
    """Return the `distributed.Security` of the files in that folder; None if there is none."""
    if not certificates:
        return None
    from distributed import Security

    own = security.read_certificates(certificates)
    roles = {f"tls_{role}_{kind}": getattr(own, of) for role in ("scheduler", "worker", "client") for kind, of in KINDS}
    return Security(tls_ca_file=own.certificate, require_encryption=True, **roles)


KINDS = (("cert", "certificate"), ("key", "key"))
