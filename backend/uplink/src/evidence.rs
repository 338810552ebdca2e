//! Hashes that identify a machine, and the labels that it has by itself. Nothing here is a key: a hub uses it as
//! evidence that a machine was reinstalled, or exists twice.

use super::settings::MachineSettings;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Maximum number of network links whose addresses are read.
const MAX_LINKS: usize = 16;

/// Identity of this machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Hash of the machine ID.
    pub machine: Option<[u8; 32]>,
    /// Hash of the kernel's boot ID.
    pub boot: Option<[u8; 32]>,
    /// Hash of the address of each physical link.
    pub links: Vec<[u8; 32]>,
    /// Host name.
    pub host: String,
    /// Whether this process runs in a container.
    pub container: bool,
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::new().chain_update("watchglass").chain_update(text.trim()).finalize().into()
}

fn hash_of(path: &Path) -> Option<[u8; 32]> {
    let text = std::fs::read_to_string(path).ok()?;
    // An image before its first boot has an empty one, or a placeholder.
    (text.trim().len() >= 16).then(|| hash(&text))
}

impl Evidence {
    /// Reads `/etc/machine-id`, `/proc/sys/kernel/random/boot_id` and `/sys/class/net/*/address` of links that have a
    /// device, all below `--root`.
    pub fn read(of: &MachineSettings) -> Self {
        let at = |path: &str| of.root.join(path);
        let machine = ["etc/machine-id", "var/lib/dbus/machine-id"].iter().find_map(|path| hash_of(&at(path)));
        let links = std::fs::read_dir(of.sys.join("class/net")).into_iter().flatten().flatten();
        let mut links: Vec<PathBuf> =
            links.map(|link| link.path()).filter(|link| link.join("device").exists()).collect();
        links.sort();
        links.truncate(MAX_LINKS);
        let address = |link: &PathBuf| hash_of(&link.join("address"));
        Evidence {
            machine,
            boot: hash_of(&of.proc.join("sys/kernel/random/boot_id")),
            links: links.iter().filter_map(address).collect(),
            host: of.host.clone(),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists())
                || variable("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }

    /// Evidence for a machine that an endpoint tells of under this host name: hashes of this machine's and of the name. So
    /// a hub recognizes it by the same rules as this one, if this process has kept no identity.
    pub fn of_found(&self, host: &str) -> Self {
        let of = |own: [u8; 32]| Sha256::new().chain_update(own).chain_update(host).finalize().into();
        let machine = self.machine.map(of);
        Evidence {
            machine,
            boot: None,
            links: machine.into_iter().collect(),
            host: host.into(),
            container: self.container,
        }
    }

    /// Its host name as a label.
    pub fn host_label(&self) -> Option<(String, String)> {
        (!self.host.is_empty()).then(|| ("host.name".to_string(), self.host.clone()))
    }

    /// Labels of the machine itself, with OpenTelemetry's names.
    pub fn labels(&self, facts: &[(String, String)]) -> Vec<(String, String)> {
        let fact = |word: &str| facts.iter().find(|(known, _)| known == word).map(|(_, value)| value.clone());
        let all = [
            ("host.arch", fact("architecture")),
            ("os.type", Some(std::env::consts::OS.to_string())),
            ("host.gpu.model", fact("gpus")),
            ("k8s.node.name", variable("NODE_NAME")),
            ("slurm.cluster", variable("SLURM_CLUSTER_NAME")),
            ("container", self.container.then(|| "true".to_string())),
        ];
        let all = all.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
        self.host_label().into_iter().chain(all).collect()
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_by_hashes_of_what_stands_below_the_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
        write("proc/sys/kernel/random/boot_id", "0d1e2f3a-0000-1111-2222-333344445555\n");
        write("sys/class/net/eth0/address", "52:54:00:12:34:56\n");
        write("sys/class/net/eth0/device/x", "");
        write("sys/class/net/lo/address", "00:00:00:00:00:00\n");
        let below = |part: &str| folder.path().join(part);
        let machine =
            MachineSettings { root: below(""), proc: below("proc"), sys: below("sys"), host: "node-1".into() };
        let evidence = Evidence::read(&machine);
        assert_eq!(evidence.machine, Some(hash("0123456789abcdef0123456789abcdef")));
        assert!(evidence.boot.is_some() && evidence.boot != evidence.machine);
        assert_eq!(evidence.links, [hash("52:54:00:12:34:56")], "lo has no device");
        assert!(!hex::encode(evidence.links[0]).contains("5254"));
        write("etc/machine-id", "uninitialized\n");
        assert_eq!(Evidence::read(&machine).machine, None);
    }

    #[test]
    fn a_machine_of_an_endpoint_is_told_by_this_one_and_its_name() {
        let own = Evidence { machine: Some([7; 32]), boot: Some([8; 32]), host: "here".into(), ..Evidence::default() };
        let (one, other) = (own.of_found("node-b"), own.of_found("node-c"));
        assert_eq!((one.machine, &one.links), (own.of_found("node-b").machine, &own.of_found("node-b").links));
        assert!(one.machine.is_some() && one.machine != own.machine && one.machine != other.machine);
        assert_eq!(
            (one.boot, one.links.len(), one.host_label()),
            (None, 1, Some(("host.name".into(), "node-b".into())))
        );
        let unknown = Evidence::default().of_found("node-b");
        assert!(unknown.machine.is_none() && unknown.links.is_empty());
    }
}
