//! One AMD card, read from the files of its driver.

use super::accelerator::{AcceleratorReading, Counters};
use super::metrics::Metrics;
use super::{ras, xgmi};
use crate::devices::gpu_reading::GpuReading;
use crate::read::drm::{self, Card, number};
use crate::{CollectError, Collector, Options, Out, Part, Roots};
use inventory::GpuNumbers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The part of a card.
pub(super) fn part(card: Card, options: &Options, roots: &Roots) -> Part {
    let i = options.gpu_numbers.claim(&card.pci, card.number);
    let tried = vec![card.dir.join("device").display().to_string()];
    let name = format!("card{} {}", card.number, card.pci);
    let sensors = Sensors::open(&card);
    let (sys, next_blocks) = (roots.sys.clone(), Duration::ZERO);
    let numbers = options.gpu_numbers.clone();
    let collector = AmdCard { sys, i, numbers, card, sensors, table_tells: None, before: None, next_blocks };
    Part { name, tried, collector: Box::new(collector) }
}

struct AmdCard {
    sys: PathBuf,
    i: u32,
    numbers: Arc<GpuNumbers>,
    card: Card,
    sensors: Option<Sensors>,
    /// Whether the controller's table has values that no plain file has. None before the first reading.
    table_tells: Option<bool>,
    /// Counters of the controller's table at the previous tick, and its time.
    before: Option<(Duration, Counters)>,
    /// Earliest time of the next reading of the errors by block and of the links' neighbors.
    next_blocks: Duration,
}

/// Interval between two readings of the errors by block: the driver asks the hardware for each of them. Neighbors change
/// with the hardware only.
const BLOCKS_INTERVAL: Duration = Duration::from_secs(10);

impl Collector for AmdCard {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if self.card.sleeps() {
            self.before = None;
            return Ok(()); // any other reading would wake it
        }
        let (mut reading, mut more) = self.read(out.at());
        if reading.is_empty() && self.found_again() {
            (reading, more) = self.read(out.at());
        }
        if reading.is_empty() {
            return Err(CollectError::failed(format!("the files of the card at {} cannot be read", self.card.pci)));
        }
        reading.put(self.i, out);
        more.put(self.i, out);
        Ok(())
    }
}

impl AmdCard {
    /// Finds a card again at the same PCI address. After a return its number and its sensors may differ.
    fn found_again(&mut self) -> bool {
        let found = drm::cards(&self.sys, super::DRIVERS).into_iter().find(|card| card.pci == self.card.pci);
        let Some(card) = found else { return false };
        self.card = card;
        self.sensors = Sensors::open(&self.card);
        self.before = None;
        true
    }

    fn read(&mut self, at: Duration) -> (GpuReading, AcceleratorReading) {
        let device = self.card.dir.join("device");
        let mut reading = GpuReading {
            utilization: number(&device.join("gpu_busy_percent")),
            activity: number(&device.join("mem_busy_percent")),
            memory_used: number(&device.join("mem_info_vram_used")),
            memory_total: number(&device.join("mem_info_vram_total")),
            ..GpuReading::default()
        };
        if let Some(errors) = ras::memory(&device) {
            (reading.corrected, reading.uncorrected) = (errors.corrected, errors.uncorrected);
        }
        if let Some(sensors) = &self.sensors {
            sensors.read(&mut reading);
        }
        let table = fill(&mut reading, &device.join("gpu_metrics"), &mut self.table_tells);
        let mut more = AcceleratorReading::default();
        let mut has_port_numbers = false;
        if let Some(Accelerator { values, counters, has_ports }) = table {
            (more, has_port_numbers) = (values, has_ports);
            if let Some((before_at, before)) = &self.before {
                more.add_growth(before, &counters, at.saturating_sub(*before_at));
            }
            self.before = Some((at, counters));
            more.max_pcie_width = number(&device.join("max_link_width"));
            more.max_pcie_speed = speed(&device.join("max_link_speed"));
        }
        if at >= self.next_blocks {
            self.next_blocks = at + BLOCKS_INTERVAL;
            more.blocks = ras::blocks(&device);
            if has_port_numbers {
                let number = |(link, pci): xgmi::Neighbor| Some((link, self.numbers.number_of(&pci)?));
                more.neighbors = xgmi::neighbors(&device).into_iter().filter_map(number).collect();
            }
        }
        (reading, more)
    }
}

/// GT/s in a file of the PCI device, such as `32.0 GT/s PCIe`.
fn speed(path: &Path) -> Option<f64> {
    std::fs::read_to_string(path).ok()?.split_once(" GT/s")?.0.trim().parse().ok()
}

/// Values of an accelerator's table beside those of every GPU.
struct Accelerator {
    values: AcceleratorReading,
    counters: Counters,
    /// Whether the table numbers its links as the driver's file of neighbors.
    has_ports: bool,
}

/// Adds values that only the controller's table has or that the plain files lack. Its memory activity is not used:
/// cards without `mem_busy_percent` report zero there.
/// The controller takes far longer to answer than a plain file, so the table is read again only if it adds values;
/// `tells` stores that.
fn fill(reading: &mut GpuReading, path: &Path, tells: &mut Option<bool>) -> Option<Accelerator> {
    let missing = reading.utilization.is_none() || reading.power.is_none() || reading.temp.is_none();
    if !missing && *tells == Some(false) {
        return None;
    }
    let bytes = std::fs::read(path).unwrap_or_default();
    let table = Metrics::from_bytes(&bytes);
    let table = table.as_ref();
    reading.energy = table.and_then(|table| table.energy());
    reading.utilization = reading.utilization.or_else(|| table?.utilization());
    reading.power = reading.power.or_else(|| table?.power());
    reading.temp = reading.temp.or_else(|| table?.temp());
    let more = table.filter(|table| table.is_of_accelerator());
    *tells = Some(reading.energy.is_some() || more.is_some());
    more.map(|table| {
        let mode = std::fs::read_to_string(path.with_file_name("current_compute_partition")).ok();
        Accelerator {
            values: table.accelerator(mode.as_deref().map(str::trim)),
            counters: table.counters(),
            has_ports: table.has_port_numbers(),
        }
    })
}

/// Paths of a card's sensors, determined once.
struct Sensors {
    folder: PathBuf,
    /// In order of preference: memory, junction, edge.
    temps: Vec<(String, PathBuf)>,
    shader_clock: Option<PathBuf>,
    memory_clock: Option<PathBuf>,
}

impl Sensors {
    fn open(card: &Card) -> Option<Self> {
        let folder = card.sensors()?;
        let input = |name: &str| folder.join(format!("{name}_input"));
        // Old drivers have one temperature without a label: the edge.
        let order = |label: &str| match label {
            "mem" => 0,
            "junction" => 1,
            _ => 2,
        };
        let mut temps = Card::labels(&folder, "temp", "_input");
        temps.retain(|(label, _)| matches!(label.as_str(), "mem" | "junction" | "edge" | ""));
        temps.sort_by_key(|(label, _)| order(label));
        let temps = temps.into_iter().map(|(label, name)| (label, input(&name))).collect();
        let clocks = Card::labels(&folder, "freq", "_input");
        let clock = |label: &str, unlabeled: &str| {
            let found = clocks.iter().find(|(l, name)| l == label || (l.is_empty() && name == unlabeled));
            found.map(|(_, name)| input(name))
        };
        let (shader_clock, memory_clock) = (clock("sclk", "freq1"), clock("mclk", "freq2"));
        Some(Sensors { temps, shader_clock, memory_clock, folder })
    }

    fn read(&self, reading: &mut GpuReading) {
        let sensor = |name: &str| number(&self.folder.join(name));
        let micro = |value: f64| value / 1e6;
        reading.power = sensor("power1_average").or_else(|| sensor("power1_input")).map(micro);
        reading.power_limit = sensor("power1_cap").map(micro);
        reading.fan_rpm = sensor("fan1_input");
        // Cards without a memory sensor print 0 for it.
        reading.temp = self.temps.iter().find_map(|(label, path)| {
            let value = number(path)? / 1000.0;
            (label != "mem" || value != 0.0).then_some(value)
        });
        let megahertz = |path: &Option<PathBuf>| path.as_deref().and_then(number).map(micro);
        reading.shader_clock = megahertz(&self.shader_clock);
        reading.memory_clock = megahertz(&self.memory_clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use std::time::Duration;

    fn read(sys: &Path) -> Vec<(String, f64)> {
        let roots = Roots { sys: sys.into(), ..Roots::default() };
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        for mut part in super::super::open(&Options::default(), &roots).expect("a card") {
            part.collector.collect(&mut out).expect("values");
        }
        out.present()
    }

    #[test]
    fn recordings_yield_their_lists() {
        for card in [
            "hd7870",
            "phoenix",
            "r7-240",
            "rx580",
            "rx6900xt",
            "rx7800xt",
            "rx9070",
            "strixpoint",
            "vangogh",
            "vega56",
        ] {
            let sys = recordings::sys(&format!("amd/sysfs_{card}.json"));
            // The lists number the first card 0, regardless of its number on the machine.
            let present: Vec<_> =
                read(sys.path()).into_iter().map(|(tag, value)| (tag.replacen("gpu.1.", "gpu.0.", 1), value)).collect();
            recordings::check(&format!("amd_sysfs_{card}"), &present);
        }
    }

    type Present = Vec<(String, f64)>;

    /// Values of a recorded accelerator at its first table, and two seconds later.
    fn two_seconds_later(name: &str) -> (Present, Present) {
        let sys = recordings::sys(&format!("amd/sysfs_{name}.json"));
        let roots = Roots { sys: sys.path().into(), ..Roots::default() };
        let mut part = super::super::open(&Options::default(), &roots).expect("a card").remove(0);
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        part.collector.collect(&mut out).expect("values");
        let first = out.present();
        let device = sys.path().join("class/drm/card1/device");
        std::fs::rename(device.join("gpu_metrics.later"), device.join("gpu_metrics")).expect("a later table");
        out.begin(Duration::from_secs(2));
        part.collector.collect(&mut out).expect("values");
        (first, out.present())
    }

    const ACCELERATORS: [&str; 6] = [
        "mi300x-spx_gpu-metrics-1.4_CONSTRUCTED",
        "mi300x-spx_gpu-metrics-1.5_CONSTRUCTED",
        "mi300x-spx_gpu-metrics-1.6_CONSTRUCTED",
        "mi300x-dpx_gpu-metrics-1.7_CONSTRUCTED",
        "mi350x-cpx_gpu-metrics-1.8_CONSTRUCTED",
        "mi300x-dpx_gpu-metrics-1.9_CONSTRUCTED",
    ];

    #[test]
    fn accelerators_with_throttling_links_and_partitions_are_read() {
        for name in ACCELERATORS {
            let (first, later) = two_seconds_later(name);
            recordings::check(&format!("amd_sysfs_{name}"), &later);
            let grows =
                |tag: &str| ["Violation", "xgmi.", "xgmiRead", "throttle"].iter().any(|word| tag.contains(word));
            assert!(!first.iter().any(|(tag, _)| grows(tag)), "{name}: nothing has grown yet");
        }
    }

    #[test]
    fn links_are_named_by_the_gpu_at_their_other_end() {
        let sys = recordings::sys("amd/sysfs_mi300x-dpx_gpu-metrics-1.9_CONSTRUCTED.json");
        let drm = sys.path().join("class/drm");
        for (card, pci) in [("card1", "0000:c1:00.0"), ("card3", "0000:c4:00.0")] {
            let device = sys.path().join("devices").join(pci);
            std::fs::create_dir_all(device.parent().expect("a folder")).expect("a folder");
            let own = drm.join(card).join("device");
            match own.exists() {
                true => std::fs::rename(&own, &device).expect("a folder"),
                false => put_at(&device.join("uevent"), &format!("DRIVER=amdgpu\nPCI_SLOT_NAME={pci}\n")),
            }
            std::fs::create_dir_all(drm.join(card)).expect("a folder");
            std::os::unix::fs::symlink(&device, &own).expect("a link");
        }
        let hive = sys.path().join("devices/0000:c1:00.0/xgmi_hive_info");
        std::fs::create_dir(&hive).expect("a folder");
        std::os::unix::fs::symlink(sys.path().join("devices/0000:c1:00.0"), hive.join("node1")).expect("a link");
        std::os::unix::fs::symlink(sys.path().join("devices/0000:c4:00.0"), hive.join("node2")).expect("a link");
        let roots = Roots { sys: sys.path().into(), ..Roots::default() };
        let mut parts = super::super::open(&Options::default(), &roots).expect("two cards");
        let mut out = Out::default();
        let mut neighbors = |second| {
            out.begin(Duration::from_secs(second));
            parts[0].collector.collect(&mut out).expect("values");
            let named = out.present().into_iter().filter(|(tag, _)| tag.ends_with("linkNeighbor"));
            named.collect::<Vec<_>>()
        };
        // Link 4 leads to node 2, which is card 3; node 3 is on another machine.
        assert_eq!(neighbors(0), [("gpu.1.xgmi.4.linkNeighbor".to_string(), 3.0)]);
        assert_eq!(neighbors(5), []);
        assert_eq!(neighbors(10).len(), 1);
        // Older tables count the links in an order that depends on the driver.
        let older = recordings::sys("amd/sysfs_mi350x-cpx_gpu-metrics-1.8_CONSTRUCTED.json");
        let table = std::fs::read(older.path().join("class/drm/card1/device/gpu_metrics")).expect("a table");
        std::fs::write(drm.join("card1/device/gpu_metrics"), table).expect("a file");
        assert_eq!(neighbors(20), []);
    }

    #[test]
    fn errors_by_block_are_read_every_ten_seconds() {
        let (first, later) = two_seconds_later("mi300x-spx_gpu-metrics-1.6_CONSTRUCTED");
        let blocks: Vec<_> = first.iter().filter(|(tag, _)| tag.contains(".ecc.")).collect();
        let read: Vec<(&str, f64)> = blocks.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        assert_eq!(
            read,
            [
                ("gpu.1.ecc.gfx.eccCorrected", 3.0),
                ("gpu.1.ecc.gfx.eccDeferred", 0.0),
                ("gpu.1.ecc.gfx.eccUncorrected", 0.0),
                ("gpu.1.ecc.umc.eccCorrected", 20.0),
                ("gpu.1.ecc.umc.eccDeferred", 2.0),
                ("gpu.1.ecc.umc.eccUncorrected", 1.0),
                ("gpu.1.ecc.xgmi_wafl.eccCorrected", 0.0),
                ("gpu.1.ecc.xgmi_wafl.eccUncorrected", 0.0),
            ]
        );
        assert!(!later.iter().any(|(tag, _)| tag.contains(".ecc.")));
        let (first, _) = two_seconds_later("mi350x-cpx_gpu-metrics-1.8_CONSTRUCTED");
        let aca = first.iter().find(|(tag, _)| tag == "gpu.1.ecc.umc.eccCorrected");
        assert_eq!(aca.map(|(_, value)| *value), Some(7.0), "newer accelerators have other files");
    }

    #[test]
    fn counters_that_were_reset_give_no_share_and_no_rate() {
        let before = Counters { cycles: Some(100), held: [Some(50); 5], read: [Some(9); 8], written: [Some(9); 8] };
        let now = Counters { cycles: Some(200), held: [Some(0); 5], read: [Some(1); 8], written: [Some(8); 8] };
        let second = Duration::from_secs(1);
        let mut reading = AcceleratorReading::default();
        reading.add_growth(&before, &now, second);
        assert_eq!(reading, AcceleratorReading::default());
        let stands = Counters { cycles: before.cycles, ..before.clone() };
        reading.add_growth(&before, &stands, Duration::ZERO);
        assert_eq!(reading, AcceleratorReading::default(), "no time has passed");
        reading.add_growth(&now, &before, second);
        assert_eq!(reading.held, [None; 5], "the steps were counted anew");
    }

    /// A constructed card with every file that is read.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:41:00.0\n"),
            ("power/runtime_status", "active\n"),
            ("gpu_busy_percent", "73\n"),
            ("mem_busy_percent", "12\n"),
            ("mem_info_vram_used", "1073741824\n"),
            ("mem_info_vram_total", "4294967296\n"),
            ("ras/umc_err_count", "ue: 1\nce: 20\n"),
            ("hwmon/hwmon2/power1_average", "150000000\n"),
            ("hwmon/hwmon2/power1_cap", "300000000\n"),
            ("hwmon/hwmon2/temp1_input", "40000\n"),
            ("hwmon/hwmon2/temp1_label", "edge\n"),
            ("hwmon/hwmon2/temp2_input", "61000\n"),
            ("hwmon/hwmon2/temp2_label", "junction\n"),
            ("hwmon/hwmon2/temp3_input", "0\n"),
            ("hwmon/hwmon2/temp3_label", "mem\n"),
            ("hwmon/hwmon2/freq1_input", "1700000000\n"),
            ("hwmon/hwmon2/freq1_label", "sclk\n"),
            ("hwmon/hwmon2/freq2_input", "1600000000\n"),
            ("hwmon/hwmon2/freq2_label", "mclk\n"),
            ("hwmon/hwmon2/fan1_input", "1200\n"),
        ] {
            put(dir.path(), path, text);
        }
        dir
    }

    fn put(sys: &Path, path: &str, text: &str) {
        put_at(&sys.join("class/drm/card3/device").join(path), text);
    }

    fn put_at(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn value(present: &[(String, f64)], tag: &str) -> Option<f64> {
        present.iter().find(|(name, _)| name == &format!("gpu.3.{tag}")).map(|(_, value)| *value)
    }

    #[test]
    fn a_card_is_read_from_its_files() {
        let dir = machine();
        let present = read(dir.path());
        for (tag, wanted) in [
            ("gpu", 73.0),
            ("memoryReadWriteActivity", 12.0),
            ("memoryAllocated", 25.0),
            ("memoryAllocatedBytes", 1_073_741_824.0),
            ("memoryTotalBytes", 4_294_967_296.0),
            ("powerWatts", 150.0),
            ("enforcedPowerLimitWatts", 300.0),
            ("powerPercent", 50.0),
            ("temp", 61.0),
            ("smClock", 1700.0),
            ("memoryClock", 1600.0),
            ("fanRpm", 1200.0),
            ("correctedMemoryErrors", 20.0),
            ("uncorrectedMemoryErrors", 1.0),
        ] {
            assert_eq!(value(&present, tag), Some(wanted), "{tag}");
        }
        assert_eq!(present.iter().filter(|(tag, _)| !tag.contains(".ecc.")).count(), 14);
    }

    #[test]
    fn an_accelerators_energy_comes_from_its_table_and_fills_what_is_missing() {
        let dir = machine();
        let mut table = vec![0xff; 288];
        table[..4].copy_from_slice(&[0x20, 0x01, 1, 4]);
        table[12..14].copy_from_slice(&88u16.to_le_bytes());
        table[24..32].copy_from_slice(&(7u64 << 16).to_le_bytes());
        std::fs::write(dir.path().join("class/drm/card3/device/gpu_metrics"), table).unwrap();
        let present = read(dir.path());
        assert_eq!((value(&present, "energyJoules"), value(&present, "gpu")), (Some(7.0), Some(73.0)));
        std::fs::remove_file(dir.path().join("class/drm/card3/device/gpu_busy_percent")).unwrap();
        assert_eq!(value(&read(dir.path()), "gpu"), Some(88.0));
    }

    #[test]
    fn a_sleeping_card_is_not_read() {
        let dir = machine();
        put(dir.path(), "power/runtime_status", "suspended\n");
        assert_eq!(read(dir.path()), []);
    }

    #[test]
    fn a_file_that_is_cut_or_garbage_leaves_its_tag_out() {
        let dir = machine();
        put(dir.path(), "gpu_busy_percent", "7");
        put(dir.path(), "hwmon/hwmon2/power1_average", "\n");
        put(dir.path(), "hwmon/hwmon2/temp2_input", "N/A\n");
        put(dir.path(), "ras/umc_err_count", "ue: 1\nce: 2");
        let present = read(dir.path());
        for tag in ["gpu", "powerWatts", "powerPercent", "correctedMemoryErrors"] {
            assert_eq!(value(&present, tag), None, "{tag}");
        }
        assert_eq!(value(&present, "temp"), Some(40.0), "the next sensor");
        assert_eq!(value(&present, "uncorrectedMemoryErrors"), Some(1.0));
    }

    #[test]
    fn a_card_that_left_is_said_and_comes_back_as_itself() {
        let dir = machine();
        let roots = Roots { sys: dir.path().into(), ..Roots::default() };
        let mut part = super::super::open(&Options::default(), &roots).unwrap().remove(0);
        assert_eq!(part.name, "card3 0000:41:00.0");
        let drm = dir.path().join("class/drm");
        let mut out = Out::default();
        let mut tick = |second| {
            // The errors by block are read at some ticks only.
            out.begin(Duration::from_secs(second));
            let present = part.collector.collect(&mut out).map(|()| out.present());
            present.map(|all| all.into_iter().filter(|(tag, _)| !tag.contains(".ecc.")).collect::<Vec<_>>())
        };
        let before = tick(0).unwrap();
        std::fs::rename(drm.join("card3"), dir.path().join("gone")).unwrap();
        assert_eq!(tick(1), Err(CollectError::failed("the files of the card at 0000:41:00.0 cannot be read")));
        std::fs::rename(dir.path().join("gone"), drm.join("card5")).unwrap();
        std::fs::rename(drm.join("card5/device/hwmon/hwmon2"), drm.join("card5/device/hwmon/hwmon7")).unwrap();
        assert_eq!(tick(2).unwrap(), before);
    }
}
