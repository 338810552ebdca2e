//! Selects the links that count. A byte may pass several of them: a network card, a bond of cards, a VLAN on the bond,
//! a bridge of containers, a tunnel. The total of all links contains each byte once.
//!
//! As for disks, real devices count: links with a `device` in /sys/class/net. Without any, a link counts if it is not
//! layered on another and leads out of this network namespace. This is the case in a container, or with a part of a
//! machine's files.

use crate::read::sysfs;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Values of /sys/class/net/X/type: a loopback link, and Ethernet.
const LOOPBACK: &str = "772";
const ETHERNET: &str = "1";

/// DEVTYPE (in /sys/class/net/X/uevent) of links that are layered on others.
const ON_OTHERS: [&str; 13] = [
    "bond",
    "bridge",
    "vlan",
    "vxlan",
    "geneve",
    "wireguard",
    "macsec",
    "team",
    "vrf",
    "hsr",
    "bareudp",
    "gretap",
    "ip6gretap",
];

/// Name prefixes of links to containers or virtual machines of this host, and of links that programs create.
const OF_GUESTS: [&str; 18] = [
    "veth", "tap", "vnet", "cali", "lxc", "azv", "gke", "eni", "cilium", "vif", "fwln", "fwpr", "docker", "virbr",
    "br-", "cni", "flannel", "dummy",
];

/// Role of a link in the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// Whether its bytes are in the total.
    pub counts: bool,
    /// Whether it has series of its own.
    pub listed: bool,
}

/// A link, as described in /sys.
#[derive(Debug, Default)]
struct Link {
    is_loopback: bool,
    /// Whether the kernel lists a device for it.
    is_real: bool,
    /// Whether it represents a function lent to a guest. The card counts its traffic, too.
    represents: bool,
    /// DEVTYPE.
    kind: Option<String>,
    is_ethernet: Option<bool>,
    /// `iflink`: index of the link at its other end, if that is another link.
    other_end: Option<String>,
    index: Option<String>,
    /// Whether its other end is a program.
    is_tap: bool,
    master: Option<String>,
    /// Links on which it is layered.
    lower: HashSet<String>,
}

/// The roles of these links, in their order; `class` is /sys/class/net.
pub(super) fn roles<'a>(names: impl Iterator<Item = &'a str> + Clone, class: &Path) -> Vec<Role> {
    let mut links: HashMap<&str, Link> = names.clone().map(|name| (name, Link::read(name, class))).collect();
    connect(&mut links, class);
    let counts = counting(&links);
    let role = |name: &str| {
        let link = &links[name];
        let counts = counts.contains(name);
        Role { counts, listed: counts || (!link.is_loopback && !link.is_of_guest(name)) }
    };
    names.map(role).collect()
}

/// Adds the links below each link; either of the two may name the relation.
fn connect(links: &mut HashMap<&str, Link>, class: &Path) {
    let mut below: Vec<(String, String)> = Vec::new();
    for (name, link) in links.iter() {
        let Ok(entries) = std::fs::read_dir(class.join(name)) else { continue };
        for entry in entries.flatten() {
            let entry = entry.file_name().to_string_lossy().into_owned();
            if let Some(lower) = entry.strip_prefix("lower_") {
                below.push(((*name).into(), lower.into()));
            } else if let Some(upper) = entry.strip_prefix("upper_") {
                below.push((upper.into(), (*name).into()));
            }
        }
        below.extend(link.master.clone().map(|master| (master, (*name).to_string())));
    }
    for (upper, lower) in below {
        if let Some(link) = links.get_mut(upper.as_str()) {
            link.lower.insert(lower);
        }
    }
}

/// The links whose bytes are in the total.
fn counting<'a>(links: &HashMap<&'a str, Link>) -> HashSet<&'a str> {
    let of = |counts: &dyn Fn(&str, &Link) -> bool| -> HashSet<&'a str> {
        links.iter().filter(|(name, link)| !link.is_loopback && counts(name, link)).map(|(name, _)| *name).collect()
    };
    let is_real = |name: &str| links.get(name).is_some_and(|link| link.is_real);
    // The master of a virtual card counts its bytes again. The same holds for a switch port and the port to the
    // processor.
    let has_real_above = |link: &Link| link.master.as_deref().is_some_and(is_real);
    let real = of(&|_, link| {
        let on_real = link.lower.iter().any(|lower| is_real(lower) && !links[lower.as_str()].has_master(links, link));
        link.is_real && !link.represents && !has_real_above(link) && !on_real
    });
    let indexes: HashSet<&str> = links.values().filter_map(|link| link.index.as_deref()).collect();
    let leads_out = |link: &Link| link.other_end.as_deref().is_some_and(|end| !indexes.contains(end));
    // A container may have a card of its own beside its link to the host.
    let is_called_a_card = |name: &str| {
        ["eth", "net", "ens", "enp"]
            .iter()
            .any(|word| name.strip_prefix(word).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
    };
    if !real.is_empty() {
        let more = of(&|name, link| {
            !link.is_real && leads_out(link) && link.master.is_none() && link.lower.is_empty() && is_called_a_card(name)
        });
        return &real | &more;
    }
    let lies_on_none = |link: &Link| link.lower.is_empty() && !link.is_on_others();
    let plain = of(&|name, link| lies_on_none(link) && link.other_end.is_none() && !link.is_of_guest(name));
    if !plain.is_empty() {
        return plain;
    }
    let out = of(&|_, link| lies_on_none(link) && leads_out(link) && link.master.is_none());
    if out.is_empty() { of(&|_, link| link.lower.is_empty()) } else { out }
}

impl Link {
    fn read(name: &str, class: &Path) -> Link {
        let link = class.join(name);
        let text = |file: &str| sysfs::text(&link.join(file));
        let kind = text("type");
        let is_loopback = name == "lo" || kind.as_deref() == Some(LOOPBACK);
        let uevent = text("uevent").unwrap_or_default();
        let represents = text("phys_port_name").is_some_and(|port| {
            // Functions of a card have names such as pf0vf3, pf0sf1, c1pf0vf0; the card's own port is p0.
            port.contains("pf") && (port.contains("vf") || port.contains("sf"))
        });
        let (index, other_end) = (text("ifindex"), text("iflink"));
        Link {
            is_loopback,
            is_real: link.join("device").exists(),
            represents,
            kind: uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).map(String::from),
            is_ethernet: kind.map(|kind| kind == ETHERNET),
            other_end: other_end.filter(|end| index.as_ref() != Some(end)),
            index,
            is_tap: link.join("tun_flags").exists(),
            master: target(&link.join("master")),
            lower: HashSet::new(),
        }
    }

    /// Whether it is layered on others, or carries traffic in packets of other links.
    fn is_on_others(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| ON_OTHERS.contains(&kind)) || self.is_ethernet == Some(false)
    }

    /// Whether its other end is a guest of this machine, or a program.
    fn is_of_guest(&self, name: &str) -> bool {
        let is_called_so = || OF_GUESTS.iter().any(|word| name.starts_with(word));
        !self.is_real && self.kind.is_none() && (self.is_tap || is_called_so())
    }

    /// Whether `of` is the master of this link.
    fn has_master(&self, links: &HashMap<&str, Link>, of: &Link) -> bool {
        self.master.as_deref().and_then(|master| links.get(master)).is_some_and(|master| std::ptr::eq(master, of))
    }
}

/// Name of the target of a symbolic link in /sys. A copy of a machine's files may have a plain file instead.
fn target(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok().or_else(|| sysfs::text(path).map(PathBuf::from))?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Files of a machine's links: name and entries of /sys/class/net, `file=text` or `file>target`.
    fn machine(links: &[(&str, &str)]) -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, files) in links {
            let link = folder.path().join(name);
            std::fs::create_dir(&link).expect("made");
            for file in files.split_whitespace() {
                match (file.split_once('='), file.split_once('>')) {
                    (Some((file, text)), _) => std::fs::write(link.join(file), text).expect("written"),
                    (_, Some((file, target))) => symlink(target, link.join(file)).expect("linked"),
                    _ => std::fs::create_dir(link.join(file)).expect("made"),
                }
            }
        }
        (folder, links.iter().map(|(name, _)| (*name).to_string()).collect())
    }

    /// The links that count, and the other listed ones.
    fn split_links(links: &[(&str, &str)]) -> (String, String) {
        let (folder, names) = machine(links);
        let roles = roles(names.iter().map(String::as_str), folder.path());
        let which = |wanted: fn(&Role) -> bool| -> String {
            let all = names.iter().zip(&roles).filter(|(_, role)| wanted(role)).map(|(name, _)| name.as_str());
            all.collect::<Vec<_>>().join(" ")
        };
        (which(|role| role.counts), which(|role| role.listed && !role.counts))
    }

    const VLAN: &str = "uevent=DEVTYPE=vlan";

    #[test]
    fn cards_count_and_what_lies_on_them_is_listed() {
        let (counts, listed) = split_links(&[
            ("lo", "type=772"),
            ("eth0", "device master>../bond0 upper_bond0"),
            ("eth1", "device master>../bond0 upper_bond0"),
            ("bond0", "uevent=DEVTYPE=bond lower_eth0 lower_eth1 upper_bond0.7"),
            ("bond0.7", "uevent=DEVTYPE=vlan lower_bond0"),
            ("wg0", "type=65534 uevent=DEVTYPE=wireguard"),
            ("tailscale0", "type=65534 tun_flags=0x1"),
            ("macvlan0", "uevent=DEVTYPE=macvlan lower_eth1"),
        ]);
        assert_eq!((counts.as_str(), listed.as_str()), ("eth0 eth1", "bond0 bond0.7 wg0 macvlan0"));
    }

    #[test]
    fn guests_of_a_host_do_not_count_again() {
        for port in ["master>../br0", "master>../ovs-system", ""] {
            let (counts, _) = split_links(&[
                ("eno1", &format!("device {port}")),
                ("br0", "uevent=DEVTYPE=bridge bridge lower_eno1 lower_veth1a"),
                ("ovs-system", ""),
                ("veth1a", "ifindex=9 iflink=2 master>../br0"),
                ("calif00", "ifindex=11 iflink=3"),
                ("vnet0", "tun_flags=0x1002 master>../br0"),
                ("docker0", "uevent=DEVTYPE=bridge bridge"),
            ]);
            assert_eq!(counts, "eno1", "{port}");
        }
    }

    #[test]
    fn links_to_pods_of_each_cloud_have_no_series() {
        let pods = ["eni3a4b5c6d7e8", "gke1a2b", "azv12ab", "cali00", "lxc9f"].map(|name| (name, "ifindex=9 iflink=3"));
        let (counts, listed) = split_links(&[&[("ens5", "device")][..], &pods[..]].concat());
        assert_eq!((counts.as_str(), listed.as_str()), ("ens5", ""));
        assert_eq!(split_links(&[("eni0", "device")]).0, "eni0", "a card of that name");
    }

    #[test]
    fn a_virtual_card_and_its_function_count_once() {
        let (azure, _) = split_links(&[("eth0", "device lower_enP1"), ("enP1", "device master>../eth0")]);
        assert_eq!(azure, "eth0");
        let (switch, _) =
            split_links(&[("eth0", "device"), ("lan1", "device lower_eth0"), ("lan2", "device lower_eth0")]);
        assert_eq!(switch, "eth0");
        let (lent, _) = split_links(&[("p0", "device phys_port_name=p0"), ("pf0vf1", "device phys_port_name=pf0vf1")]);
        assert_eq!(lent, "p0");
    }

    #[test]
    fn in_a_container_the_way_out_counts() {
        let (pod, _) = split_links(&[("lo", ""), ("eth0", "ifindex=2 iflink=31 type=1")]);
        assert_eq!(pod, "eth0");
        let (docker, _) = split_links(&[
            ("eth0", "ifindex=2 iflink=31 type=1"),
            ("docker0", "ifindex=3 iflink=3 uevent=DEVTYPE=bridge lower_veth7"),
            ("veth7", "ifindex=4 iflink=2 master>../docker0"),
            ("a", "ifindex=5 iflink=6"),
            ("b", "ifindex=6 iflink=5"),
        ]);
        assert_eq!(docker, "eth0");
        let (two, _) = split_links(&[("eth0", "ifindex=2 iflink=31"), ("net1", "device ifindex=3 iflink=3")]);
        assert_eq!(two, "eth0 net1");
        let (macvlan, _) =
            split_links(&[("eth0", "ifindex=2 iflink=7 uevent=DEVTYPE=macvlan"), ("tun0", "type=65534 tun_flags=1")]);
        assert_eq!(macvlan, "eth0");
    }

    #[test]
    fn where_no_device_is_known_what_lies_lowest_counts() {
        let (counts, listed) = split_links(&[
            ("eth0", "master>../bond0 upper_bond0 type=1"),
            ("eth1", "master>../bond0 upper_bond0 type=1"),
            ("bond0", "uevent=DEVTYPE=bond type=1"),
            ("bond0.100", &format!("{VLAN} lower_bond0 type=1")),
        ]);
        assert_eq!((counts.as_str(), listed.as_str()), ("eth0 eth1", "bond0 bond0.100"));
        let (bridged, _) = split_links(&[("eth0", "master>../br0"), ("br0", ""), ("veth1", "master>../br0")]);
        assert_eq!(bridged, "eth0");
        assert_eq!(split_links(&[("lo", ""), ("bond0", "")]).0, "bond0", "nothing else is known");
        assert_eq!(split_links(&[("lo", ""), ("tun0", "type=65534")]).0, "tun0", "nothing else is there");
    }
}
