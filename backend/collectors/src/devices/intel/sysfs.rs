//! One Intel card, read from the files of its driver, i915 or xe.

use crate::devices::gpu_reading::GpuReading;
use crate::read::drm::{self, Card, number};
use crate::read::sysfs::names;
use crate::{CollectError, Collector, Options, Out, Part, Roots};
use shared::catalog::gpu;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The part of a card.
pub(super) fn part(card: Card, options: &Options, roots: &Roots) -> Part {
    let i = options.gpu_numbers.claim(&card.pci, card.number);
    let tried = vec![card.dir.join("device").display().to_string()];
    let name = format!("card{} {}", card.number, card.pci);
    let (files, energy, idle) = (Files::open(&card), None, None);
    Part { name, tried, collector: Box::new(IntelCard { sys: roots.sys.clone(), i, card, files, energy, idle }) }
}

struct IntelCard {
    sys: PathBuf,
    i: u32,
    card: Card,
    files: Files,
    /// The energy at the previous tick.
    energy: Option<Energy>,
    /// The time of the previous tick, and the residencies in the idle state then.
    idle: Option<(Duration, Vec<Option<f64>>)>,
}

#[derive(Clone, Copy)]
struct Energy {
    at: Duration,
    /// Index of the counter, because each one covers another part of the card.
    counter: usize,
    microjoules: f64,
}

impl Collector for IntelCard {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        if self.card.sleeps() {
            (self.energy, self.idle) = (None, None);
            return Ok(()); // any other reading would wake it
        }
        let mut reading = self.files.read();
        if reading.is_empty() && self.found_again() {
            reading = self.files.read();
        }
        let energy = self.files.energy(out.at());
        if reading.is_empty() && energy.is_none() {
            (self.energy, self.idle) = (None, None);
            return Err(CollectError::failed(format!("the files of the card at {} cannot be read", self.card.pci)));
        }
        reading.power = self.energy.zip(energy).and_then(|(before, now)| watts(before, now));
        self.energy = energy;
        let idle = (out.at(), self.files.residencies());
        reading.utilization = self.idle.as_ref().and_then(|before| utilization(before, &idle));
        self.idle = Some(idle);
        reading.put(self.i, out);
        Ok(())
    }
}

impl IntelCard {
    /// Finds a card again at the same PCI address. After a return its number and its sensors may differ.
    fn found_again(&mut self) -> bool {
        let found = drm::cards(&self.sys, super::DRIVERS).into_iter().find(|card| card.pci == self.card.pci);
        let Some(card) = found else { return false };
        self.files = Files::open(&card);
        self.card = card;
        (self.energy, self.idle) = (None, None);
        true
    }
}

/// Share of the time in which the busiest unit was not in its idle state, percent. A counter that fell was reset, and
/// says nothing.
fn utilization(before: &(Duration, Vec<Option<f64>>), now: &(Duration, Vec<Option<f64>>)) -> Option<f64> {
    let passed = now.0.checked_sub(before.0)?.as_secs_f64() * 1000.0;
    let busy = |(before, now): (&Option<f64>, &Option<f64>)| {
        let idle = (*now)? - (*before)?;
        // The tick begins some time before the counter is read, so the idle time may exceed the interval by a little.
        (passed > 0.0 && idle >= 0.0).then(|| 100.0 * (1.0 - idle / passed).max(0.0))
    };
    let most = before.1.iter().zip(&now.1).filter_map(busy).max_by(f64::total_cmp)?;
    Some(gpu::UTILIZATION.rounded(most))
}

/// Mean power between two readings of one counter; none if the counter was reset.
fn watts(before: Energy, now: Energy) -> Option<f64> {
    let seconds = now.at.checked_sub(before.at)?.as_secs_f64();
    let joules = (now.microjoules - before.microjoules) / 1e6;
    (before.counter == now.counter && seconds > 0.0 && joules >= 0.0)
        .then(|| gpu::POWER_WATTS.rounded(joules / seconds))
}

/// Paths of a card's files, determined once.
struct Files {
    frequency: Option<PathBuf>,
    fan: Option<PathBuf>,
    temp: Option<PathBuf>,
    memory_temp: Option<PathBuf>,
    power_limit: Option<PathBuf>,
    /// The counter of the whole card precedes that of its package.
    energy: Vec<PathBuf>,
    /// Time in the idle state of each unit, milliseconds.
    idle: Vec<PathBuf>,
}

/// Files of the time in the idle state: of each unit of xe and of i915, and of older i915. A unit (GT) computes and
/// renders, another one has the video engines.
fn idle_files(card: &Card) -> Vec<PathBuf> {
    let below = |folder: PathBuf, prefix: &str| -> Vec<PathBuf> {
        names(&folder).iter().filter(|name| name.starts_with(prefix)).map(|name| folder.join(name)).collect()
    };
    let units = below(card.dir.join("device"), "tile").into_iter().flat_map(|tile| below(tile, "gt"));
    let xe = units.map(|unit| unit.join("gtidle/idle_residency_ms"));
    let i915 = below(card.dir.join("gt"), "gt").into_iter().map(|unit| unit.join("rc6_residency_ms"));
    let files: Vec<PathBuf> = xe.chain(i915).filter(|path| path.exists()).collect();
    let older = card.dir.join("power/rc6_residency_ms");
    if files.is_empty() && older.exists() { vec![older] } else { files }
}

impl Files {
    fn open(card: &Card) -> Self {
        let frequency = ["device/tile0/gt0/freq0/act_freq", "gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz"]
            .map(|path| card.dir.join(path));
        let frequency = frequency.into_iter().find(|path| path.exists());
        let sensors = card.sensors();
        // A single sensor without a label is the GPU's: i915 labels none.
        let by_label = |kind: &str, ending: &str, labels: &[&str]| -> Vec<PathBuf> {
            let Some(folder) = &sensors else { return Vec::new() };
            let all = Card::labels(folder, kind, ending);
            let named = labels.iter().flat_map(|wanted| all.iter().filter(move |(label, _)| label == wanted));
            named.map(|(_, name)| folder.join(format!("{name}{ending}"))).collect()
        };
        let one = |kind: &str, ending: &str, labels: &[&str]| by_label(kind, ending, labels).into_iter().next();
        Files {
            frequency,
            fan: one("fan1", "_input", &[""]),
            temp: one("temp", "_input", &["pkg", ""]),
            memory_temp: one("temp", "_input", &["vram"]),
            power_limit: one("power", "_max", &["card", "pkg", ""]),
            energy: by_label("energy", "_input", &["card", "pkg", ""]),
            idle: idle_files(card),
        }
    }

    fn read(&self) -> GpuReading {
        let read = |path: &Option<PathBuf>| path.as_deref().and_then(number);
        let degrees = |path: &Option<PathBuf>| read(path).map(|millidegrees| millidegrees / 1000.0);
        GpuReading {
            frequency: read(&self.frequency),
            fan_rpm: read(&self.fan),
            temp: degrees(&self.temp),
            memory_temp: degrees(&self.memory_temp),
            power_limit: read(&self.power_limit).map(|microwatts| microwatts / 1e6),
            ..GpuReading::default()
        }
    }

    /// Milliseconds in the idle state, by unit. A unit that never was in it may have none: drivers print 0 where the
    /// firmware or the card does not allow that state.
    fn residencies(&self) -> Vec<Option<f64>> {
        self.idle.iter().map(|path| number(path).filter(|millis| *millis > 0.0)).collect()
    }

    /// The first counter above zero: cards that cannot measure the whole board leave its counter at zero.
    fn energy(&self, at: Duration) -> Option<Energy> {
        let counters = self.energy.iter().map(|path: &PathBuf| number(Path::new(path))).enumerate();
        let (counter, microjoules) = counters
            .filter_map(|(counter, value)| Some((counter, value?)))
            .find(|(_, microjoules)| *microjoules > 0.0)?;
        Some(Energy { at, counter, microjoules })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use serde_json::Value;
    use shared::catalog::MetricDef;

    fn parts(sys: &Path) -> Vec<Part> {
        let roots = Roots { sys: sys.into(), ..Roots::default() };
        super::super::open(&Options::default(), &roots).expect("a card")
    }

    fn tick(part: &mut Part, out: &mut Out, second: u64) -> Vec<(String, f64)> {
        out.begin(Duration::from_secs(second));
        part.collector.collect(out).expect("values");
        out.present()
    }

    #[test]
    fn recordings_yield_their_lists() {
        for card in ["a380-i915", "a380-xe", "b580", "b580-6.16", "tigerlake"] {
            let sys = recordings::sys(&format!("intel/sysfs_{card}.json"));
            let read = tick(&mut parts(sys.path())[0], &mut Out::default(), 0);
            // The lists number the first card 0, regardless of its number on the machine. They have temperatures and
            // the limit under the kernel's names instead of ours. All values must match exactly.
            let read = read.into_iter().map(|(tag, value)| (tag.replacen("gpu.1.", "gpu.0.", 1), value));
            let (noted, listed): (Vec<_>, Vec<_>) =
                read.partition(|(tag, _)| NOTED.iter().any(|(known, _)| known == tag));
            let name = format!("intel_sysfs_{card}");
            recordings::check(&name, &listed);
            let list: Value = serde_json::from_str(&recordings::text(&format!("expected/{name}.json"))).unwrap();
            for (tag, notes) in NOTED {
                let wanted = notes.iter().find_map(|note| list[note].as_f64());
                let found = noted.iter().find(|(known, _)| known == tag).map(|(_, value)| *value);
                assert_eq!(found, wanted, "{name}: {tag}");
            }
        }
    }

    const NOTED: &[(&str, &[&str])] = &[
        ("gpu.0.temp", &["_temp:pkg", "_temp:gpu"]),
        ("gpu.0.memoryTemp", &["_temp:vram"]),
        ("gpu.0.enforcedPowerLimitWatts", &["_power_max_W:card", "_power_max_W:pkg", "_power_max_W:gpu"]),
    ];

    fn put(sys: &Path, path: &str, text: &str) {
        let path = sys.join("class/drm/card0").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn power_is_the_energy_between_two_readings() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\n");
        put("device/tile0/gt0/freq0/act_freq", "1700\n");
        put("device/hwmon/hwmon3/energy1_input", "0\n");
        put("device/hwmon/hwmon3/energy1_label", "card\n");
        put("device/hwmon/hwmon3/energy2_input", "5000000\n");
        put("device/hwmon/hwmon3/energy2_label", "pkg\n");
        put("device/hwmon/hwmon3/power2_max", "190000000\n");
        put("device/hwmon/hwmon3/power2_label", "pkg\n");
        let (mut part, mut out) = (parts(dir.path()).remove(0), Out::default());
        let mut power = |second, energy: &str| {
            put("device/hwmon/hwmon3/energy2_input", energy);
            let read = tick(&mut part, &mut out, second);
            let value = |row: &MetricDef| {
                let tag = row.tag_of("0");
                read.iter().find(|(read, _)| *read == tag).map(|(_, value)| *value)
            };
            [value(&gpu::POWER_LIMIT_WATTS), value(&gpu::POWER_WATTS), value(&gpu::POWER_PERCENT)]
        };
        let none = [Some(190.0), None, None];
        assert_eq!(power(10, "5000000\n"), none);
        assert_eq!(power(12, "195000000\n"), [Some(190.0), Some(95.0), Some(50.0)]);
        assert_eq!(power(13, "4000000\n"), none, "the counter began anew");
        assert_eq!(power(14, "N/A\n"), none);
        assert_eq!(power(15, "5000000\n"), none, "nothing to compare with");
    }

    #[test]
    fn utilization_from_the_idle_time_of_the_busiest_unit_is_read() {
        let xe = ["device/tile0/gt0/gtidle/idle_residency_ms", "device/tile0/gt1/gtidle/idle_residency_ms"];
        let i915 = ["gt/gt0/rc6_residency_ms", "gt/gt1/rc6_residency_ms"];
        for (driver, files) in [("xe", xe), ("i915", i915), ("i915", ["power/rc6_residency_ms", "power/none"])] {
            let dir = tempfile::tempdir().unwrap();
            let put = |path: &str, text: &str| put(dir.path(), path, text);
            put("device/uevent", &format!("DRIVER={driver}\nPCI_SLOT_NAME=0000:03:00.0\n"));
            put("device/hwmon/hwmon3/fan1_input", "900\n");
            put(files[0], "1000\n");
            put(files[1], "1000\n");
            let (mut part, mut out) = (parts(dir.path()).remove(0), Out::default());
            let mut busy = |second, idle: [&str; 2]| {
                put(files[0], idle[0]);
                put(files[1], idle[1]);
                let read = tick(&mut part, &mut out, second);
                read.iter().find(|(tag, _)| tag == "gpu.0.gpu").map(|(_, value)| *value)
            };
            assert_eq!(busy(10, ["1000\n", "1000\n"]), None, "nothing to compare with");
            assert_eq!(busy(12, ["1500\n", "3000\n"]), Some(75.0), "{driver}");
            assert_eq!(busy(13, ["2510\n", "4000\n"]), Some(0.0), "idle for longer than the tick");
            assert_eq!(busy(14, ["5\n", "N/A\n"]), None, "the counters began anew");
            assert_eq!(busy(15, ["N/A\n", "N/A\n"]), None);
            assert_eq!(busy(16, ["400\n", "400\n"]), None);
            assert_eq!(busy(17, ["400\n", "1400\n"]), Some(100.0), "never idle");
        }
    }

    #[test]
    fn a_unit_that_is_never_idle_is_not_busy_for_that() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
        put("gt/gt0/rps_act_freq_mhz", "600\n");
        put("gt/gt0/rc6_residency_ms", "0\n");
        put("gt/gt1/rc6_residency_ms", "1000\n");
        let (mut part, mut out) = (parts(dir.path()).remove(0), Out::default());
        let mut busy = |second, idle: &str| {
            put("gt/gt1/rc6_residency_ms", idle);
            let read = tick(&mut part, &mut out, second);
            read.into_iter().find(|(tag, _)| tag == "gpu.0.gpu").map(|(_, value)| value)
        };
        assert_eq!([busy(1, "1000\n"), busy(2, "1700\n")], [None, Some(30.0)], "the other unit alone is known");
        assert_eq!([busy(3, "0\n"), busy(4, "0\n")], [None, None], "no unit has an idle state");
    }

    #[test]
    fn a_sleeping_card_is_not_read_and_its_sleep_is_no_power() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
        put("gt/gt0/rps_act_freq_mhz", "600\n");
        put("device/hwmon/hwmon1/energy1_input", "1000000\n");
        let (mut part, mut out) = (parts(dir.path()).remove(0), Out::default());
        assert_eq!(tick(&mut part, &mut out, 0).len(), 1);
        put("device/power/runtime_status", "suspended\n");
        assert_eq!(tick(&mut part, &mut out, 1), []);
        put("device/power/runtime_status", "active\n");
        assert_eq!(tick(&mut part, &mut out, 2), [("gpu.0.freq".to_string(), 600.0)]);
        assert_eq!(tick(&mut part, &mut out, 3).len(), 2);
        std::fs::remove_dir_all(dir.path().join("class/drm")).unwrap();
        out.begin(Duration::from_secs(4));
        assert!(part.collector.collect(&mut out).is_err());
    }
}
