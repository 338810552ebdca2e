//! GPUs that are part of a Tegra chip (Jetson Orin, Xavier, Thor), read from the files of the kernel.
//!
//! NVML reports little of them: on Orin neither utilization nor temperature nor power, on Thor zeros for some, and
//! before JetPack 6 there is no NVML. So the files fill in the values that the library lacks, and stand alone without
//! it. They also have what no library has: power by rail and temperature by zone.

use crate::devices::gpu_reading::GpuReading;
use crate::read::drm::number;
use crate::read::sysfs::{names, text};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::{gpu, jetson};
use std::path::{Path, PathBuf};

/// Names of the GPU among the devices with a variable frequency, from Nano to Orin (address and chip), and on Thor.
const DEVICES: [&str; 7] = [
    "17000000.gpu",
    "17000000.ga10b",
    "17000000.gv11b",
    "17000000.gp10b",
    "57000000.gpu",
    "57000000.gm20b",
    "gpu-gpc-0",
];

/// Parts of the names that NVML gives to these GPUs.
const MODELS: [&str; 5] = ["nvgpu", "Orin", "Xavier", "Thor", "Tegra"];

/// Rails that supply the GPU and nothing else. Others, as VDD_GPU_SOC, are no power of the GPU.
const GPU_RAILS: [&str; 4] = ["VDD_GPU", "GPU", "VDD_SYS_GPU", "POM_5V_GPU"];

/// Zones of the GPU: their names since JetPack 5, and before.
const GPU_ZONES: [&str; 2] = ["gpu-thermal", "GPU-therm"];

/// Sensors of the rails.
const SENSORS: [&str; 2] = ["ina3221", "ina238"];

/// Adds the chip's own GPU to what the library or the tool opened; without either it is opened alone.
pub(super) fn add(
    opened: Result<Vec<Part>, OpenError>,
    options: &Options,
    roots: &Roots,
) -> Result<Vec<Part>, OpenError> {
    let Some(files) = Files::open(&roots.sys) else { return opened };
    let (mut tried, inner) = match opened {
        Ok(mut parts) if parts.len() == 1 => {
            let part = parts.remove(0);
            (part.tried, Some(part.collector))
        }
        Ok(parts) => return Ok(parts),
        Err(error) => (error.tried, None),
    };
    let known = options.gpu_numbers.known();
    let is_own = |labels: &[(&str, String)]| {
        labels.iter().any(|(label, value)| *label == "name" && MODELS.iter().any(|model| value.contains(model)))
    };
    let own = known.iter().find(|(_, labels)| is_own(labels)).map(|(number, _)| *number);
    let number = own.unwrap_or_else(|| options.gpu_numbers.claim("tegra", 0));
    if !options.keeps_gpu(number) {
        return match inner {
            Some(collector) => Ok(vec![Part { name: String::new(), tried, collector }]),
            None => Err(OpenError::absent(tried, "--gpu excludes the GPU of this Jetson", "name its number")),
        };
    }
    tried.push(files.device.display().to_string());
    Ok(Part::only(tried, TegraGpu { inner, files, number }))
}

struct TegraGpu {
    /// The library's collector.
    inner: Option<Box<dyn Collector>>,
    files: Files,
    number: u32,
}

impl Collector for TegraGpu {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let result = self.inner.as_mut().map_or(Ok(()), |inner| inner.collect(out));
        let reading = self.files.read(out);
        self.fill(&reading, out);
        if self.inner.is_none() && reading.is_empty() {
            let device = self.files.device.display();
            return Err(CollectError::failed(format!("the files of the GPU at {device} cannot be read")));
        }
        result
    }
}

impl TegraGpu {
    /// Puts the values that the library did not, or as zero where the files have more.
    fn fill(&self, reading: &GpuReading, out: &mut Out) {
        let i = self.number;
        let lacks = |out: &Out, row| out.value(row, i).is_none_or(|value| value == 0.0);
        let keep = |value: Option<f64>, lacks: bool| value.filter(|_| lacks);
        let clock = lacks(out, &gpu::SM_CLOCK) && lacks(out, &gpu::GRAPHICS_CLOCK);
        let filled = GpuReading {
            utilization: keep(reading.utilization, lacks(out, &gpu::UTILIZATION)),
            temp: keep(reading.temp, lacks(out, &gpu::TEMP)),
            power: keep(reading.power, lacks(out, &gpu::POWER_WATTS)),
            ..GpuReading::default()
        };
        filled.put(i, out);
        if clock {
            out.put_some(&gpu::GRAPHICS_CLOCK, i, reading.frequency);
        }
    }
}

/// One rail: volts and amperes, or its power.
enum Rail {
    /// Millivolts and milliamperes.
    Product(PathBuf, PathBuf),
    /// Microwatts.
    Power(PathBuf),
}

/// Paths of the chip's files, determined once.
struct Files {
    /// Folder of the GPU's frequency.
    device: PathBuf,
    zones: Vec<(String, PathBuf)>,
    rails: Vec<(String, Rail)>,
}

impl Files {
    fn open(sys: &Path) -> Option<Files> {
        let folder = sys.join("class/devfreq");
        let device = DEVICES.map(|name| folder.join(name)).into_iter().find(|path| path.exists())?;
        let thermal = sys.join("class/thermal");
        let zone = |name: &String| Some((text(&thermal.join(name).join("type"))?, thermal.join(name).join("temp")));
        let zones = names(&thermal).iter().filter(|name| name.starts_with("thermal_zone")).filter_map(zone).collect();
        let hwmon = sys.join("class/hwmon");
        let chips = names(&hwmon).into_iter().map(|name| hwmon.join(name));
        let is_sensor = |chip: &PathBuf| text(&chip.join("name")).is_some_and(|name| SENSORS.contains(&&*name));
        let rails = chips.filter(is_sensor).flat_map(|chip| rails_of(&chip)).collect();
        Some(Files { device, zones, rails })
    }

    /// Puts zones and rails, and returns the GPU's own values.
    fn read(&self, out: &mut Out) -> GpuReading {
        let mut reading = GpuReading {
            // In tenths of a percent.
            utilization: number(&self.device.join("device/load")).map(|tenths| tenths / 10.0),
            frequency: number(&self.device.join("cur_freq")).map(|hertz| hertz / 1e6),
            ..GpuReading::default()
        };
        for (zone, path) in &self.zones {
            let celsius = number(path).map(|thousandths| thousandths / 1000.0);
            // A zone that is powered down reports an error, or -256.
            let Some(celsius) = celsius.filter(|celsius| (-40.0..=150.0).contains(celsius)) else { continue };
            out.put(&jetson::ZONE_TEMP, zone.as_str(), celsius);
            if GPU_ZONES.contains(&zone.as_str()) {
                reading.temp = Some(celsius);
            }
        }
        for (label, rail) in &self.rails {
            let watts = match rail {
                Rail::Product(volts, amperes) => {
                    number(volts).zip(number(amperes)).map(|(volts, amperes)| volts * amperes / 1e6)
                }
                Rail::Power(power) => number(power).map(|microwatts| microwatts / 1e6),
            };
            let Some(watts) = watts.map(|watts| watts.max(0.0)) else { continue };
            out.put_rounded(&jetson::RAIL_WATTS, label.as_str(), watts);
            if GPU_RAILS.contains(&label.as_str()) {
                reading.power = Some(gpu::POWER_WATTS.rounded(watts));
            }
        }
        reading
    }
}

/// Rails of one sensor. A channel that is not connected is labeled `NC`.
fn rails_of(chip: &Path) -> Vec<(String, Rail)> {
    let label = |file: &str| text(&chip.join(file)).filter(|label| !label.is_empty() && label != "NC");
    let product = |n: u32| {
        let (volts, amperes) = (chip.join(format!("in{n}_input")), chip.join(format!("curr{n}_input")));
        let there = volts.exists() && amperes.exists();
        there.then(|| Some((label(&format!("in{n}_label"))?, Rail::Product(volts, amperes))))?
    };
    let power = chip.join("power1_input");
    let whole = power.exists().then(|| label("power1_label").or_else(|| label("label")).or_else(|| label("name")));
    let whole = whole.flatten().map(|label| (label, Rail::Power(power)));
    (1..=3).filter_map(product).chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use shared::catalog::MetricDef;
    use std::time::Duration;

    fn none() -> Result<Vec<Part>, OpenError> {
        Err(OpenError::absent(
            ["libnvidia-ml.so.1".to_string()],
            "libnvidia-ml.so.1 was not found",
            "install NVIDIA's driver",
        ))
    }

    fn read(part: &mut Part) -> (Result<(), CollectError>, Vec<(String, f64)>) {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        let result = part.collector.collect(&mut out);
        (result, out.present())
    }

    #[test]
    fn a_jetson_without_library_is_read() {
        for name in ["jetson-agx-orin_jetpack6", "jetson-agx-xavier_jetpack4", "jetson-agx-thor_jetpack7"] {
            let sys = recordings::sys(&format!("nvidia/sysfs_{name}_CONSTRUCTED.json"));
            let roots = Roots { sys: sys.path().into(), ..Roots::default() };
            let mut part = add(none(), &Options::default(), &roots).expect("a GPU").remove(0);
            assert!(part.tried.last().is_some_and(|tried| tried.contains("devfreq")), "{:?}", part.tried);
            let (result, present) = read(&mut part);
            result.expect("values");
            recordings::check(&format!("nvidia_sysfs_{name}_CONSTRUCTED"), &present);
        }
    }

    /// Values of a library, and its result.
    struct Library(Vec<(&'static MetricDef, f64)>, Result<(), CollectError>);

    impl Collector for Library {
        fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
            self.0.iter().for_each(|(row, value)| out.put(row, 0u32, *value));
            self.1.clone()
        }
    }

    fn with_library(name: Option<&str>, library: Library) -> (Result<(), CollectError>, Vec<(String, f64)>) {
        let sys = recordings::sys("nvidia/sysfs_jetson-agx-orin_jetpack6_CONSTRUCTED.json");
        let roots = Roots { sys: sys.path().into(), ..Roots::default() };
        let options = Options::default();
        options.gpu_numbers.claim("GPU-1", 0);
        options.gpu_numbers.describe("GPU-1", name.map(str::to_string), None);
        let opened = Ok(Part::only(["libnvidia-ml.so.1".to_string()], library));
        let (result, present) = read(&mut add(opened, &options, &roots).expect("a GPU")[0]);
        (result, present.into_iter().filter(|(tag, _)| tag.starts_with("gpu.")).collect())
    }

    #[test]
    fn values_that_the_library_has_are_kept_and_zeros_are_replaced() {
        let library = Library(vec![(&gpu::UTILIZATION, 0.0), (&gpu::TEMP, 48.0), (&gpu::SM_CLOCK, 918.0)], Ok(()));
        let (result, present) = with_library(Some("Orin (nvgpu)"), library);
        result.expect("values");
        let present: Vec<(&str, f64)> = present.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        assert_eq!(present, [("gpu.0.gpu", 87.3), ("gpu.0.smClock", 918.0), ("gpu.0.temp", 48.0)]);
        let failed = Library(Vec::new(), Err(CollectError::failed("GPU 0 is lost")));
        let (result, present) = with_library(Some("NVIDIA Thor"), failed);
        assert_eq!(result, Err(CollectError::failed("GPU 0 is lost")), "the library's own word stands");
        assert_eq!(present.len(), 3, "{present:?}");
    }

    #[test]
    fn a_card_beside_the_chip_keeps_its_number() {
        let library = Library(vec![(&gpu::UTILIZATION, 12.0)], Ok(()));
        let (_, present) = with_library(Some("NVIDIA RTX A6000"), library);
        let tags: Vec<&str> = present.iter().map(|(tag, _)| tag.as_str()).collect();
        assert_eq!(tags, ["gpu.0.gpu", "gpu.1.gpu", "gpu.1.graphicsClock", "gpu.1.temp"]);
    }

    #[test]
    fn other_machines_are_left_alone_and_files_that_vanish_are_said() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("class/devfreq/fb000000.gpu")).unwrap();
        let roots = Roots { sys: dir.path().into(), ..Roots::default() };
        let error = add(none(), &Options::default(), &roots).err().expect("another vendor's GPU");
        assert!(error.reason.contains("libnvidia-ml"), "{}", error.reason);
        let device = dir.path().join("class/devfreq/17000000.gpu");
        std::fs::create_dir_all(&device).unwrap();
        let mut part = add(none(), &Options::default(), &roots).expect("a GPU").remove(0);
        let (result, present) = read(&mut part);
        assert!(result.is_err_and(|error| error.reason.contains("17000000.gpu")) && present.is_empty());
        let options = Options { gpus: vec![3], ..Options::default() };
        let error = add(none(), &options, &roots).err().expect("it is excluded");
        assert!(error.reason.contains("--gpu"), "{}", error.reason);
    }
}
