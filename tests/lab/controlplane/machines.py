"""A machine of scripts: what the recipe runs, without Debian, network or compiler."""

from __future__ import annotations

from pathlib import Path

from tools.kubernetes.provide import Machine

DEBIAN = 'PRETTY_NAME="Debian"\nID=debian\n'
_OWN = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: stable\nComponents: main\n"
_REFLECT2 = "github.com/modern-go/reflect2"
_SCRIPTS = {
    "apt-get": """
        case " $* " in
        *" download "*) touch etcd-server_1.deb kubernetes-client_1.deb reflect2_1.deb ;;
        *" source "*) touch kubernetes_1.dsc ;;
        esac""",
    "dpkg-deb": f"""
        mkdir -p "$3/usr/bin" "$3/usr/share/gocode/src/{_REFLECT2}"
        for name in etcd kubectl; do printf '#!/bin/sh\\n' > "$3/usr/bin/$name"; chmod +x "$3/usr/bin/$name"; done
        cd "$3/usr/share/gocode/src/{_REFLECT2}"; touch go_above_118.go new.go new_test.go""",
    "dpkg-source": f"""
        mkdir -p "$3/cmd/kube-apiserver" "$3/cmd/kube-scheduler" "$3/vendor/{_REFLECT2}"; touch "$3/vendor/{_REFLECT2}/old.go" """,
    "make": f"""
        env > "$OUT/environment"; ls vendor/{_REFLECT2} > "$OUT/reflect2"
        mkdir -p _output/local/go/bin; cd _output/local/go/bin
        for name in kube-apiserver kube-scheduler; do printf '#!/bin/sh\\necho Kubernetes v1.20.2\\n' > $name; chmod +x $name; done""",
    "go": "",
    "rsync": "",
    "jq": "",
}


def script(path: Path, lines: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


class FakeMachine:
    """A Debian for root, with every necessary program. Each call of one becomes a line of `calls`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.os_release = folder / "os-release"
        self.os_release.write_text(DEBIAN)
        (folder / "apt" / "sources.list.d").mkdir(parents=True)
        self.sources = folder / "apt" / "sources.list.d" / "debian.sources"
        self.sources.write_text(_OWN)
        for name, lines in _SCRIPTS.items():
            self.program(name, lines)

    def program(self, name: str, lines: str) -> None:
        """Replace a program."""
        say_so = f'OUT={self.folder}; PATH=/usr/bin:/bin; echo "{name} $*" >> "$OUT/calls"'
        script(self.programs / name, f"{say_so}\n{lines}")

    def without(self, name: str) -> None:
        """Uninstall a program."""
        (self.programs / name).unlink()

    def machine(self, *, root: bool = True) -> Machine:
        """Return the environment for the recipe."""
        return Machine(self.os_release, self.folder / "apt", str(self.programs), root)

    @property
    def calls(self) -> list[str]:
        """Return the called programs, with arguments."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []
