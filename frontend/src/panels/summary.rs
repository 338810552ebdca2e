//! A chart in one sentence, for screen readers.

use super::picture::Picture;
use charts::Hue;
use charts::band::quantile;

/// A unit as it is spoken.
pub fn spoken_unit(symbol: &str) -> &str {
    match symbol {
        "%" => "percent",
        "°C" => "degrees",
        "W" => "watts",
        other => other,
    }
}

/// A chart in a sentence for screen readers, which leads with what is furthest from the others: `8 GPUs, median 99
/// percent; GPU 7 lowest with 77`. `to` is the end of the span, ms since the epoch.
pub fn summary(picture: &Picture, to: i64) -> String {
    let values: Vec<(usize, f64)> =
        picture.values(None, to).into_iter().enumerate().filter(|(_, v)| v.is_finite()).collect();
    let unit = spoken_unit(picture.unit);
    let sentence = match &values[..] {
        [] => "no data".to_string(),
        [(i, value)] if picture.names.len() == 1 || picture.peers().is_none() => {
            let name = if picture.names.len() == 1 { String::new() } else { format!("{}, ", picture.names[*i].full) };
            format!("{name}{} {unit}", picture.number(*value))
        }
        all => {
            let mut sorted: Vec<f64> = all.iter().map(|(_, v)| *v).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let median = quantile(&sorted, 0.5);
            let name = |i: usize| &picture.names[i].full;
            let far = all.iter().filter(|(i, _)| matches!(picture.hue(*i), Hue::Odd(_)));
            let mut rest: String = far
                .map(|(i, v)| {
                    let place = if *v < median { "lowest" } else { "highest" };
                    format!("; {} {place} with {}", name(*i), picture.number(*v))
                })
                .collect();
            let ends = (all.iter().min_by(|a, b| a.1.total_cmp(&b.1)), all.iter().max_by(|a, b| a.1.total_cmp(&b.1)));
            if let (true, (Some(low), Some(high))) = (rest.is_empty() && picture.peers().is_none(), ends) {
                rest = format!(
                    "; {} highest with {}, {} lowest with {}",
                    name(high.0),
                    picture.number(high.1),
                    name(low.0),
                    picture.number(low.1)
                );
            }
            format!(
                "{} {}, median {} {unit}{rest}",
                all.len(),
                picture.peers().unwrap_or("series"),
                picture.number(median)
            )
        }
    };
    sentence.trim_end().to_string()
}
