//! NVIDIA's Jetson: power by rail of the board, temperature by zone of the chip. Its GPU uses the rows of every GPU.

use super::MetricDef;
use crate::unit::Unit;

/// Power of one rail.
pub static RAIL_WATTS: MetricDef = MetricDef::gauge("jetson.{rail}.powerWatts", Unit::Watts)
    .title("Jetson power by rail")
    .on("jetson.power", "{rail}")
    .steps(1000.0)
    .help("Power of one rail of the board, as in jetson.VDD_GPU_SOC.powerWatts; a rail that supplies the whole board (VDD_IN, VIN) includes the others. Voltage x current of the sensors ina3221, power1_input of ina238; readings below zero, which are the sensor's offset, are 0.");

/// Temperature of one zone.
pub static ZONE_TEMP: MetricDef = MetricDef::gauge("jetson.{zone}.temp", Unit::Celsius)
    .title("Jetson temperature by zone")
    .on("jetson.temp", "{zone}")
    .steps(10.0)
    .help("Temperature of one zone of the chip, as in jetson.gpu-thermal.temp; tj-thermal is the highest of all. A zone that is powered down has none. The kernel's thermal zones, temp / 1000.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&RAIL_WATTS, &ZONE_TEMP];
