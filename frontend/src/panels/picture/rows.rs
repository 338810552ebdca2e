//! What a person chose of a heat map.

/// The order of the rows of a heat map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they are numbered.
    #[default]
    Index,
    /// Smallest mean of the window first.
    Mean,
    /// Furthest from the median first.
    Distance,
}

/// What a person chose of a heat map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Their order.
    pub order: Order,
    /// Values, not the distance from the median.
    pub values: bool,
}

/// What can be chosen of a heat map: as in the address, and in words. The first three are orders.
pub const CHOICES: [(&str, &str); 5] =
    [("index", "index"), ("mean", "lowest"), ("distance", "furthest"), ("median", "from median"), ("values", "value")];

impl Rows {
    /// As written in an address; what is not understood is left at its default.
    pub fn read(text: &str) -> Rows {
        text.split('.').fold(Rows::default(), |rows, word| rows.with(word))
    }

    /// With one choice more.
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

    /// Whether a choice holds.
    pub fn is(self, choice: &str) -> bool {
        self.with(choice) == self
    }

    /// As it stands in an address; empty for the default.
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
