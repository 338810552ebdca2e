//! The layout of a map in CSS pixels.

use super::Group;

/// Hosts in a column.
const COLUMN: usize = 8;
/// Maximum number of hosts with their names beside them; more are drawn small.
const MAX_NAMED: usize = 128;

/// The layout style of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One row per host: its name, then its cells.
    Named,
    /// One small box per host, with two rows of cells.
    Small,
    /// Small boxes in rows, with the group's name on the left, for a phone.
    Phone,
}

/// A rectangle in CSS pixels: left, top, width, height.
pub type Spot = (i32, i32, i32, i32);

/// The layout of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The style that fits the number of hosts and the width.
    pub manner: Manner,
    /// Spot of each host's cells.
    pub boxes: Vec<Spot>,
    /// Position of each group's name (left, middle of the text), the group, and the room for the name.
    pub(super) heads: Vec<(i32, i32, usize, i32)>,
    /// Position of each part's name, and one of its groups.
    pub(super) parts: Vec<(i32, i32, usize)>,
    /// Room for a host's name left of its box; 0 for none.
    pub(super) name: i32,
    /// Total height in CSS pixels.
    pub height: i32,
}

impl Plan {
    /// Places the hosts of `groups` in a width of CSS pixels. `name` is the room that the longest name of a host needs.
    pub fn new(groups: &[Group], wide: i32, name: i32, phone: bool) -> Plan {
        let hosts: usize = groups.iter().map(|g| g.hosts).sum();
        if phone {
            return Self::phone(groups, wide);
        }
        let name = name.clamp(24, 150) + 8;
        let columns = columns(groups, rows_of(hosts, wide));
        let least = name + 14 + 64 + 12;
        let per = (wide / least).max(1) as usize;
        if hosts > MAX_NAMED || columns.len().div_ceil(per) > 3 {
            return Self::small(groups, wide);
        }
        Self::named(&columns, wide, name, per)
    }

    fn empty(manner: Manner) -> Plan {
        Plan { manner, boxes: Vec::new(), heads: Vec::new(), parts: Vec::new(), name: 0, height: 0 }
    }

    fn named(columns: &[Vec<Piece>], wide: i32, name: i32, per: usize) -> Plan {
        let mut plan = Plan { name, ..Self::empty(Manner::Named) };
        // Equal numbers of columns per band look calm.
        let bands = columns.len().div_ceil(per).max(1);
        let per = columns.len().div_ceil(bands).max(1);
        let pitch = (f64::from(wide) / per as f64).min(330.0);
        let mut top = 0;
        for band in columns.chunks(per) {
            let mut lowest = top;
            for (k, column) in band.iter().enumerate() {
                let left = (k as f64 * pitch).round() as i32 + 12;
                let wide = (pitch as i32 - name - 12 - 16).clamp(40, 220);
                let mut y = top;
                for piece in column {
                    plan.heads.extend(piece.head.then_some((left, y + 9, piece.group, pitch as i32 - 20)));
                    y += 24;
                    for _ in 0..piece.hosts {
                        plan.boxes.push((left + name, y + 3, wide, 20));
                        y += 26;
                    }
                }
                lowest = lowest.max(y);
            }
            top = lowest + 10;
        }
        plan.height = top;
        plan
    }

    fn small(groups: &[Group], wide: i32) -> Plan {
        let mut plan = Self::empty(Manner::Small);
        let left = if groups.iter().any(|g| !g.part.is_empty()) { 70 } else { 0 };
        let per = ((wide - left) / SMALL_WIDE).max(1);
        let pitch = f64::from(wide - left) / f64::from(per);
        let (mut top, mut k, mut part, mut labeled) = (0, 0, None, i32::MIN);
        for (i, group) in groups.iter().enumerate() {
            let other = part.is_some_and(|part| part != group.part);
            if other || k >= per {
                (top, k, labeled) = (top + SMALL_BAND, 0, i32::MIN);
            }
            if left > 0 && (part.is_none() || other) {
                plan.parts.push((0, top + 24, i));
            }
            part = Some(group.part);
            let mut rest = group.hosts;
            while rest > 0 {
                if k >= per {
                    (top, k, labeled) = (top + SMALL_BAND, 0, i32::MIN);
                }
                let x = left + (f64::from(k) * pitch).round() as i32;
                // A name that would touch the previous one is left out; the pointer still shows it.
                if rest == group.hosts && x >= labeled {
                    plan.heads.push((x, top + 7, i, 6 * pitch as i32));
                    labeled = x + 6 * pitch as i32 - 4;
                }
                let n = rest.min(COLUMN);
                let wide = (pitch as i32 - 6).max(4);
                plan.boxes.extend((0..n as i32).map(|row| (x, top + 18 + row * SMALL_PITCH, wide, 8)));
                rest -= n;
                k += 1;
            }
        }
        plan.height = top + SMALL_BAND;
        plan
    }

    fn phone(groups: &[Group], wide: i32) -> Plan {
        let mut plan = Self::empty(Manner::Phone);
        let left = if groups.len() > 1 { 58 } else { 0 };
        let pitch = (wide - left) / COLUMN as i32;
        let mut top = 2;
        for (i, group) in groups.iter().enumerate() {
            if left > 0 {
                plan.heads.push((0, top + 7, i, left - 6));
            }
            for row in 0..group.hosts.div_ceil(COLUMN) {
                let n = (group.hosts - row * COLUMN).min(COLUMN) as i32;
                plan.boxes.extend((0..n).map(|k| (left + k * pitch, top, pitch - 6, 15)));
                top += 24;
            }
        }
        plan.height = top;
        plan
    }

    /// The host at a position in CSS pixels, or the one whose name is there.
    pub fn at(&self, x: f64, y: f64) -> Option<usize> {
        let slack = if self.manner == Manner::Named { 3.0 } else { 2.0 };
        self.boxes.iter().position(|&(left, top, wide, high)| {
            let (left, top) = (f64::from(left - self.name) - slack, f64::from(top) - slack);
            let (right, bottom) =
                (left + f64::from(wide + self.name) + 2.0 * slack, top + f64::from(high) + 2.0 * slack);
            (left..right).contains(&x) && (top..bottom).contains(&y)
        })
    }

    /// The host that an arrow key moves to from `from`: the nearest in the direction (`dx`, `dy`).
    pub fn beside(&self, from: usize, (dx, dy): (i32, i32)) -> Option<usize> {
        let &(x0, y0, ..) = self.boxes.get(from)?;
        let far = |&(x, y, ..): &Spot| {
            let (ahead, aside) = ((x - x0) * dx + (y - y0) * dy, ((x - x0) * dy).abs() + ((y - y0) * dx).abs());
            (ahead > 0).then_some(ahead + 3 * aside)
        };
        let near = self.boxes.iter().enumerate().filter_map(|(i, place)| Some((far(place)?, i)));
        near.min().map(|(_, i)| i)
    }
}

/// Minimum distance between two columns of small boxes. Forty-two racks fit beside each other in a window of 1,440 px.
const SMALL_WIDE: i32 = 30;
/// Height of a band of small boxes.
const SMALL_BAND: i32 = 18 + COLUMN as i32 * SMALL_PITCH + 8;
/// Distance from one small box to the next below it.
const SMALL_PITCH: i32 = 11;

/// A part of a group in a column.
struct Piece {
    group: usize,
    hosts: usize,
    head: bool,
}

/// Number of hosts in a column: eight, or fewer if a small fleet would otherwise fill only one corner of a wide page.
fn rows_of(hosts: usize, wide: i32) -> usize {
    hosts.div_ceil((wide / 300).max(1) as usize).clamp(2, COLUMN)
}

/// Arranges groups as columns: large ones have columns of their own, small ones share one.
fn columns(groups: &[Group], rows: usize) -> Vec<Vec<Piece>> {
    let (mut columns, mut shared, mut used): (Vec<Vec<Piece>>, Vec<Piece>, usize) = (Vec::new(), Vec::new(), 0);
    for (group, g) in groups.iter().enumerate() {
        if g.hosts + 1 >= rows {
            columns.extend((!shared.is_empty()).then(|| std::mem::take(&mut shared)));
            used = 0;
            for begin in (0..g.hosts).step_by(rows) {
                columns.push(vec![Piece { group, hosts: (g.hosts - begin).min(rows), head: begin == 0 }]);
            }
        } else {
            if used + g.hosts > rows {
                columns.push(std::mem::take(&mut shared));
                used = 0;
            }
            used += g.hosts + 1;
            shared.push(Piece { group, hosts: g.hosts, head: true });
        }
    }
    columns.extend((!shared.is_empty()).then_some(shared));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(sizes: &[usize]) -> Vec<Group<'static>> {
        sizes.iter().map(|&hosts| Group { name: "r", note: "", part: "", part_note: "", hosts }).collect()
    }

    /// Checks that boxes are within the width and the height, and do not overlap.
    #[track_caller]
    fn fits(plan: &Plan, hosts: usize, wide: i32) {
        assert_eq!(plan.boxes.len(), hosts);
        for (i, &(x, y, w, h)) in plan.boxes.iter().enumerate() {
            assert!(x >= 0 && y >= 0 && x + w <= wide && y + h <= plan.height, "{i}: {x} {y} {w} {h} in {wide}");
            let over = |&(x2, y2, w2, h2): &Spot| x < x2 + w2 && x2 < x + w && y < y2 + h2 && y2 < y + h;
            assert!(!plan.boxes[..i].iter().any(over), "{i} lies over another");
        }
    }

    #[test]
    fn no_width_ends_a_plan() {
        for wide in (-1..200).chain([390, 4_000]) {
            for (sizes, phone) in [(vec![0], true), (vec![8; 8], true), (vec![1_000], false), (vec![3, 1, 64], false)] {
                let plan = Plan::new(&groups(&sizes), wide, 60, phone);
                assert_eq!(plan.boxes.len(), sizes.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn any_number_of_hosts_in_any_groups_has_its_places() {
        for (sizes, wide, manner) in [
            (vec![8; 8], 1_376, Manner::Named),
            (vec![5], 1_376, Manner::Named),
            (vec![64], 1_376, Manner::Named),
            (vec![1; 64], 1_376, Manner::Named),
            (vec![8; 125], 1_376, Manner::Small),
            (vec![1_000], 1_376, Manner::Small),
            (vec![3; 300], 1_000, Manner::Small),
            (vec![64], 500, Manner::Named),
        ] {
            let plan = Plan::new(&groups(&sizes), wide, 60, false);
            assert_eq!(plan.manner, manner, "{sizes:?}");
            fits(&plan, sizes.iter().sum(), wide);
        }
        fits(&Plan::new(&groups(&[8; 8]), 340, 60, true), 64, 340);
    }

    #[test]
    fn sixty_four_hosts_leave_half_of_the_page_free_and_a_thousand_stand_on_it() {
        assert!(Plan::new(&groups(&[8; 8]), 1_376, 60, false).height <= 260);
        assert!(Plan::new(&groups(&[8; 125]), 1_376, 60, false).height <= 400);
        // Three pods are three bands, also beside a scrollbar.
        let pods: Vec<Group> = (0..125).map(|i| Group { part: ["A", "B", "C"][i / 42], ..groups(&[8])[0] }).collect();
        assert_eq!(Plan::new(&pods, 1_344, 60, false).height, 3 * SMALL_BAND);
    }

    #[test]
    fn the_pointer_and_the_arrows_find_hosts() {
        let plan = Plan::new(&groups(&[8; 8]), 1_376, 60, false);
        for (i, &(x, y, w, h)) in plan.boxes.iter().enumerate() {
            assert_eq!(plan.at(f64::from(x + w / 2), f64::from(y + h / 2)), Some(i));
        }
        assert_eq!(plan.at(0.0, 9.0), None, "the name of a group is no host");
        assert_eq!(plan.beside(0, (0, 1)), Some(1));
        assert_eq!(plan.beside(0, (1, 0)), Some(8));
        assert_eq!(plan.beside(9, (-1, 0)), Some(1));
        assert_eq!(plan.beside(63, (1, 0)), None);
    }
}
