//! `[cost]`: prices of GPU time and energy. Without them no cost is shown anywhere.

use settings::{Fault, misplaced, table, value};
use std::collections::BTreeMap;
use toml::Value;

/// Key of the price of all GPUs that no other key matches.
const DEFAULT: &str = "default";

/// Maximum length of a currency name, bytes.
const MAX_CURRENCY_BYTES: usize = 8;

table! {
    /// `[cost]`: prices.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CostSettings, checked by CostSettings::check {
        /// Prices of a GPU-hour, each by a part of the model's name or `default`
        gpu_hour: BTreeMap<String, f64> = BTreeMap::new(), own(read_prices, show_prices), like "{ H100 = 2.5, default = 1.0 }";
        /// Price of a kilowatt-hour
        kwh: Option<f64> = None, text(price), like "0.3";
        /// Currency of the prices
        currency: String = String::new(), text(value::any), like "\"EUR\"";
    }
}

// No price is NaN: the parser refuses it.
impl Eq for CostSettings {}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price| is_price(*price));
    price.ok_or_else(|| "write a price of 0 or more".into())
}

fn is_price(price: f64) -> bool {
    price.is_finite() && (0.0..=1e9).contains(&price)
}

fn read_prices(value: Value) -> Result<BTreeMap<String, f64>, String> {
    let Value::Table(prices) = value else {
        return Err(misplaced(value.type_str(), "a table, like { H100 = 2.5, default = 1.0 }"));
    };
    let read = |(model, value): (String, Value)| {
        let price = value.as_float().or(value.as_integer().map(|whole| whole as f64)).filter(|price| is_price(*price));
        match price.filter(|_| !model.is_empty()) {
            Some(price) => Ok((model, price)),
            None => Err(format!("{model:?}: write a price of 0 or more behind the name of a model")),
        }
    };
    prices.into_iter().map(read).collect()
}

fn show_prices(prices: &BTreeMap<String, f64>) -> Option<Value> {
    let shown = prices.iter().map(|(model, price)| (model.clone(), Value::Float(*price)));
    (!prices.is_empty()).then(|| Value::Table(shown.collect()))
}

impl CostSettings {
    fn check(&self) -> Result<(), Fault> {
        let prices = !self.gpu_hour.is_empty() || self.kwh.is_some();
        let is_name =
            (1..=MAX_CURRENCY_BYTES).contains(&self.currency.len()) && !self.currency.chars().any(char::is_control);
        match prices && !is_name {
            true => Err(Fault::new("currency", "write what the prices are in, like \"EUR\"")),
            false => Ok(()),
        }
    }

    /// Whether there is no price.
    pub fn is_empty(&self) -> bool {
        self.gpu_hour.is_empty() && self.kwh.is_none()
    }

    /// Cost of these GPU-hours by model, and of this energy; None if a part has no price.
    pub fn total<'a>(&self, hours: impl Iterator<Item = (&'a str, f64)>, kwh: Option<f64>) -> Option<f64> {
        if self.is_empty() {
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

    /// Price per hour of a model: the longest key that its name contains.
    fn price(&self, model: &str) -> Option<f64> {
        let model = model.to_lowercase();
        let fits = |key: &&String| key.as_str() != DEFAULT && model.contains(&key.to_lowercase());
        let key = self.gpu_hour.keys().filter(fits).max_by_key(|key| key.len());
        key.and_then(|key| self.gpu_hour.get(key)).or_else(|| self.gpu_hour.get(DEFAULT)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CostSettings, String> {
        CostSettings::TABLE.read_text(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_costs_its_hours_and_its_energy_and_nothing_is_guessed() {
        let own = read("gpu_hour = { H100 = 2.5, \"H100 NVL\" = 3, default = 1 }\nkwh = 0.5\ncurrency = \"EUR\"");
        let own = own.expect("a table");
        let models = [("NVIDIA H100 80GB HBM3", 2.0), ("NVIDIA H100 NVL", 1.0), ("L4", 4.0)];
        assert_eq!(own.total(models.into_iter(), Some(2.0)), Some(5.0 + 3.0 + 4.0 + 1.0));
        assert_eq!(own.total(models.into_iter(), None), None, "its energy is not known");
        let energy = read("kwh = 0.5\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(energy.total(models.into_iter(), Some(2.0)), Some(1.0));
        let some = read("gpu_hour = { H100 = 2.5 }\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(some.total([("L4", 4.0)].into_iter(), None), None, "it has no price");
        assert_eq!(CostSettings::default().total(models.into_iter(), Some(2.0)), None);
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let own = read("gpu_hour = { H100 = 2.5, default = 1 }\nkwh = 0.3\ncurrency = \"EUR\"").expect("a table");
        assert_eq!(read(&CostSettings::TABLE.print(&own).to_string()).expect("a table"), own);
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
