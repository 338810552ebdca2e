//! Settings of a person for the heat maps.

/// The order of the rows of a heat map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By position in the chart.
    #[default]
    Index,
    /// The smallest mean in the window is first.
    Mean,
    /// The series furthest from the median is first.
    Distance,
}

/// Settings of a person for the heat maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Order of the rows.
    pub order: Order,
    /// True when cells show values, false when they show the distance from the median.
    pub values: bool,
}

/// The choices for heat maps: name in the address, and text on the button. The first three are orders.
pub const CHOICES: [(&str, &str); 5] =
    [("index", "index"), ("mean", "lowest"), ("distance", "furthest"), ("median", "from median"), ("values", "value")];

impl Rows {
    /// Reads the choices from the text of an address; unknown words are ignored.
    pub fn read(text: &str) -> Rows {
        text.split('.').fold(Rows::default(), |rows, word| rows.with(word))
    }

    /// The choices after one more, given by its name in the address; an unknown name changes nothing.
    pub fn with(self, choice: &str) -> Rows {
        match choice {
            "index" => Rows { order: Order::Index, ..self },
            "mean" => Rows { order: Order::Mean, ..self },
            "distance" => Rows { order: Order::Distance, ..self },
            "median" => Rows { values: false, ..self },
            "values" => Rows { values: true, ..self },
            _ => self,
        }
    }

    /// True if a choice is set.
    pub fn is(self, choice: &str) -> bool {
        self.with(choice) == self
    }

    /// The choices as text for an address; empty for the default.
    pub fn write(self) -> String {
        let order = match self.order {
            Order::Index => "",
            Order::Mean => "mean",
            Order::Distance => "distance",
        };
        let both = [order, if self.values { "values" } else { "" }];
        both.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_of_a_heat_map_comes_back() {
        for text in ["", "mean", "distance.values", "values"] {
            assert_eq!(Rows::read(text).write(), text);
        }
        assert_eq!(Rows::read("index.median.nonsense"), Rows::default());
        assert!(Rows::read("mean").is("mean") && Rows::read("mean").is("median") && !Rows::read("mean").is("index"));
    }
}
