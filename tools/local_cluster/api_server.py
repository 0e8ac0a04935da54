"""etcd and the API server: their command lines, for the local cluster and for the simulation."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ApiServer:
    """Where an API server and its etcd listen, and what they keep and show."""

    address: str
    port: int
    etcd_client: str
    etcd_peer: str
    etcd_data: Path
    service_addresses: str
    # Each a certificate and its key: for connections, and for the tokens of service accounts.
    serving: tuple[Path, Path]
    signing: tuple[Path, Path]
    issuer: str

    def etcd(self, binaries: Path) -> list[str]:
        """Return etcd's command line. If the machine fails, the data may be lost."""
        flags = {
            "name": "etcd",
            "data-dir": self.etcd_data,
            "listen-client-urls": self.etcd_client,
            "advertise-client-urls": self.etcd_client,
            "listen-peer-urls": self.etcd_peer,
            "initial-advertise-peer-urls": self.etcd_peer,
            "initial-cluster": f"etcd={self.etcd_peer}",
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }
        return command_line(binaries / "etcd", flags)

    def kube_apiserver(self, binaries: Path, more: Mapping[str, object]) -> list[str]:
        """Return the API server's command line, with flags that not every API server has."""
        flags = {
            "etcd-servers": self.etcd_client,
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": self.port,
            "service-cluster-ip-range": self.service_addresses,
            "allow-privileged": "true",
            "tls-cert-file": self.serving[0],
            "tls-private-key-file": self.serving[1],
            "service-account-issuer": self.issuer,
            "service-account-key-file": self.signing[0],
            "service-account-signing-key-file": self.signing[1],
        }
        return command_line(binaries / "kube-apiserver", {**flags, **more})


def command_line(program: Path, flags: Mapping[str, object]) -> list[str]:
    """Return a program's command line with these flags."""
    return [str(program), *(f"--{name}={value}" for name, value in flags.items())]
