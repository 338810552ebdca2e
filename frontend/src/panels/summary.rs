//! A chart in one sentence, for screen readers.

use charts::Hue;
use charts::band::quantile;
use charts::order;
use viewer::picture::Picture;

/// A unit in words for screen readers.
pub fn spoken_unit(symbol: &str) -> &str {
    match symbol {
        "%" => "percent",
        "°C" => "degrees",
        "W" => "watts",
        other => other,
    }
}

/// A chart in a sentence for screen readers: `8 GPUs, 99 percent, GPU 7 lowest with 77`. For devices of one kind it has
/// the median and the outliers, or the furthest device where there is no outlier. For other series it has the highest
/// and the lowest. `to` is the end of the span, ms since the epoch.
pub fn summary(picture: &Picture, to: i64) -> String {
    let values: Vec<(usize, f64)> =
        picture.values(None, to).into_iter().enumerate().filter(|(_, v)| v.is_finite()).collect();
    let unit = spoken_unit(picture.unit);
    let in_unit = |value: f64| format!("{} {unit}", picture.number(value)).trim_end().to_string();
    let name = |i: usize| &picture.names[i].full;
    match (&values[..], picture.peers()) {
        ([], _) => "no data".to_string(),
        ([(_, value)], _) if picture.names.len() == 1 => in_unit(*value),
        ([(i, value)], None) => format!("{}, {}", name(*i), in_unit(*value)),
        (all, peers) => {
            let mut sorted: Vec<f64> = all.iter().map(|(_, v)| *v).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let (low, median, high) = (quantile(&sorted, 0.0), quantile(&sorted, 0.5), quantile(&sorted, 1.0));
            let far = |(_, v): &&(usize, f64)| (v - median).abs();
            let mut told: Vec<&(usize, f64)> =
                all.iter().filter(|(i, _)| matches!(picture.hue(*i), Hue::Odd(_))).collect();
            order::sort_by(&mut told, |a, b| far(b).total_cmp(&far(a)));
            if told.is_empty() && peers.is_some() {
                // Values with the same text are treated as equal.
                let unlike = |(_, v): &&(usize, f64)| picture.number(*v) != picture.number(median);
                told.extend(all.iter().filter(unlike).max_by(|a, b| far(a).total_cmp(&far(b))));
            } else if told.is_empty() {
                told.extend(all.iter().max_by(|a, b| a.1.total_cmp(&b.1)));
                told.extend(all.iter().min_by(|a, b| a.1.total_cmp(&b.1)));
            }
            let mut said = format!("{} {}", all.len(), peers.unwrap_or("series"));
            if peers.is_some() {
                said += &format!(", {}", in_unit(median));
            }
            for (k, (i, v)) in told.into_iter().enumerate() {
                let place = match *v {
                    v if v == low => "lowest",
                    v if v == high => "highest",
                    v if v < median => "low",
                    _ => "high",
                };
                // The unit appears once.
                let value = if k == 0 && peers.is_none() { in_unit(*v) } else { picture.number(*v) };
                said += &format!(", {} {place} with {value}", name(*i));
            }
            said
        }
    }
}
