//! Devices are shown as a table, also a single one.

use stratoscope_strategy::device::listed;
use stratoscope_strategy::device::table::COLUMNS;
use stratoscope_strategy::{Devices, LogicalDevice};
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, Table};

fn table<const N: usize>(
    columns: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> MimeBundle {
    let rows = rows.into_iter();
    rows.fold(Table::new(columns), |table, row| table.row(row))
        .bundle()
}

impl IntoBundle for Devices {
    fn bundle(&self) -> MimeBundle {
        table(listed::COLUMNS, self.rows())
    }
}

impl IntoBundle for LogicalDevice {
    fn bundle(&self) -> MimeBundle {
        table(COLUMNS, [self.row()])
    }

    fn bundle_of_list(items: &[Self]) -> MimeBundle {
        table(COLUMNS, items.iter().map(Self::row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_one_table() {
        let bundle = stratoscope_strategy::devices().bundle();
        let text = bundle["text/plain"].as_str().unwrap_or_default();
        assert!(text.starts_with("name"), "{text}");
        assert!(
            text.contains("cpu:0") && text.contains("flex") && text.contains("yes: "),
            "{text}"
        );
        assert!(
            !text.contains("DeviceInfo") && !text.contains('['),
            "{text}"
        );
        let html = bundle["text/html"].as_str().unwrap_or_default();
        assert_eq!(html.matches("<table").count(), 1, "{html}");
    }
}
