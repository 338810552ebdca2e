//! `[sharing]`: share links of a hub.

use settings::table;

table! {
    /// `[sharing]`: what people without an account see.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SharingSettings {
        /// Whether teams may have share links; `false` also closes existing ones
        links: bool = true, text(settings::value::switch);
    }
}
