//! `[cost]`: what GPU-time and energy cost. Where it is absent no money is told of anywhere.

use serde::Deserialize;
use settings::FileTable;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The key whose price is of every GPU that no other key names.
const DEFAULT: &str = "default";

/// The longest name of a currency, bytes.
const MAX_CURRENCY_BYTES: usize = 8;

/// `[cost]`: prices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "RawCost")]
pub struct CostSettings {
    /// Price of a GPU-hour, by a part of the model's name or `default`.
    pub gpu_hour: BTreeMap<String, f64>,
    /// Price of a kilowatt-hour.
    pub kwh: Option<f64>,
    /// What the prices are in, as `EUR`.
    pub currency: String,
}

// No price is NaN: such are refused.
impl Eq for CostSettings {}

impl CostSettings {
    /// What so many GPU-hours of each model, and so much energy, cost; None where a part has no price.
    pub fn of<'a>(&self, hours: impl Iterator<Item = (&'a str, f64)>, kwh: Option<f64>) -> Option<f64> {
        if self.gpu_hour.is_empty() && self.kwh.is_none() {
            return None;
        }
        let (mut sum, mut any) = (0.0, false);
        for (model, hours) in hours {
            any = true;
            if !self.gpu_hour.is_empty() {
                sum += hours * self.price(model)?;
            }
        }
        let energy = match self.kwh {
            Some(price) => Some(kwh? * price),
            None => None,
        };
        (any || energy.is_some()).then(|| sum + energy.unwrap_or(0.0))
    }

    /// The price of an hour of a model: the longest key that its name has in it.
    fn price(&self, model: &str) -> Option<f64> {
        let model = model.to_lowercase();
        let fits = |key: &&String| key.as_str() != DEFAULT && model.contains(&key.to_lowercase());
        let key = self.gpu_hour.keys().filter(fits).max_by_key(|key| key.len());
        key.and_then(|key| self.gpu_hour.get(key)).or_else(|| self.gpu_hour.get(DEFAULT)).copied()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCost {
    #[serde(default)]
    gpu_hour: BTreeMap<String, f64>,
    kwh: Option<f64>,
    currency: Option<String>,
}

impl TryFrom<RawCost> for CostSettings {
    type Error = String;

    fn try_from(raw: RawCost) -> Result<Self, String> {
        let is_price = |price: f64| price.is_finite() && (0.0..=1e9).contains(&price);
        if let Some((key, _)) = raw.gpu_hour.iter().find(|(key, price)| key.is_empty() || !is_price(**price)) {
            return Err(format!("cost.gpu_hour.{key}: write a price of 0 or more after the name of a model"));
        }
        if raw.kwh.is_some_and(|price| !is_price(price)) {
            return Err("cost.kwh: write a price of 0 or more".into());
        }
        let currency = raw.currency.unwrap_or_default();
        let prices = !raw.gpu_hour.is_empty() || raw.kwh.is_some();
        let is_name = (1..=MAX_CURRENCY_BYTES).contains(&currency.len()) && !currency.chars().any(char::is_control);
        match prices && !is_name {
            true => Err("cost.currency: write the currency of the prices, like \"EUR\"".into()),
            false => Ok(CostSettings { gpu_hour: raw.gpu_hour, kwh: raw.kwh, currency }),
        }
    }
}

impl FileTable for CostSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("gpu_hour", "Prices of a GPU-hour: { \"H100\" = 2.5, default = 1.0 }, each by a part of the model's name"),
        ("kwh", "Price of a kilowatt-hour"),
        ("currency", "What the prices are in, like \"EUR\""),
    ];

    fn print(&self) -> Table {
        let mut table = Table::new();
        if !self.gpu_hour.is_empty() {
            let prices = self.gpu_hour.iter().map(|(key, price)| (key.clone(), Value::Float(*price)));
            table.insert("gpu_hour".into(), Value::Table(prices.collect()));
        }
        if let Some(price) = self.kwh {
            table.insert("kwh".into(), Value::Float(price));
        }
        if !self.currency.is_empty() {
            table.insert("currency".into(), self.currency.clone().into());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CostSettings, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_costs_its_hours_and_its_energy_and_nothing_is_guessed() {
        let own = read("gpu_hour = { H100 = 2.5, \"H100 NVL\" = 3, default = 1 }\nkwh = 0.5\ncurrency = \"EUR\"");
        let own = own.expect("a table");
        let models = [("NVIDIA H100 80GB HBM3", 2.0), ("NVIDIA H100 NVL", 1.0), ("L4", 4.0)];
        assert_eq!(own.of(models.into_iter(), Some(2.0)), Some(5.0 + 3.0 + 4.0 + 1.0));
        assert_eq!(own.of(models.into_iter(), None), None, "its energy is not known");
        let energy = read("kwh = 0.5\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(energy.of(models.into_iter(), Some(2.0)), Some(1.0));
        let some = read("gpu_hour = { H100 = 2.5 }\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(some.of([("L4", 4.0)].into_iter(), None), None, "it has no price");
        assert_eq!(CostSettings::default().of(models.into_iter(), Some(2.0)), None);
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let own = read("gpu_hour = { H100 = 2.5, default = 1 }\nkwh = 0.3\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        assert_eq!(read("").expect("nothing"), CostSettings::default());
        for (text, part) in [
            ("kwh = 0.3", "currency"),
            ("kwh = -1\ncurrency = \"EUR\"", "0 or more"),
            ("gpu_hour = { L4 = nan }", "L4"),
        ] {
            assert!(read(text).expect_err("nonsense").contains(part), "{text}");
        }
    }
}
