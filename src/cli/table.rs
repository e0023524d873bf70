//! Aligned columns that fit the terminal.

use std::io::{self, IsTerminal, Write};

/// Narrowest that a column is squeezed to, in characters.
const NARROWEST: usize = 6;

/// Rows under headings. Columns are aligned to the left and two blanks apart.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<&'static str>,
    /// Columns that may be squeezed, the most patient first.
    squeezable: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes an empty table; `squeezable` are the columns that are cut when the screen is narrow, first to last.
    pub fn new<const N: usize>(headings: [&'static str; N], squeezable: &[usize]) -> Self {
        Self { headings: headings.into(), squeezable: squeezable.into(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// Writes the table, no line wider than `width` characters; `None` is as wide as it gets.
    pub fn write(&self, out: &mut dyn Write, width: Option<usize>) -> io::Result<()> {
        let mut widths: Vec<usize> = self.headings.iter().map(|heading| heading.len()).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(cell.chars().count());
            }
        }
        if let Some(width) = width {
            self.squeeze(&mut widths, width);
        }
        let bold = anstyle::Style::new().bold();
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        writeln!(out, "{bold}{}{bold:#}", line(&headings, &widths, width))?;
        for row in &self.rows {
            writeln!(out, "{}", line(row, &widths, width))?;
        }
        Ok(())
    }

    fn squeeze(&self, widths: &mut [usize], width: usize) {
        for &column in &self.squeezable {
            let whole = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            let over = whole.saturating_sub(width);
            if let Some(widest) = widths.get_mut(column) {
                *widest = widest.saturating_sub(over).max(NARROWEST.min(*widest));
            }
        }
    }
}

fn line(cells: &[String], widths: &[usize], width: Option<usize>) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{:<width$}", fit(cell, *width))).collect();
    let line = padded.join("  ").trim_end().to_owned();
    width.map_or(line.clone(), |width| fit(&line, width))
}

/// Cuts a text to a width; a cut one ends with `…`.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain((width > 0).then_some('…')).collect()
}

/// Returns a text on one line, without what a terminal would obey.
pub fn one_line(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { ' ' } else { each }).collect()
}

/// Returns the width of the terminal in characters; `None` when stdout is none.
pub fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>) -> String {
        let mut table = Table::new(["JOB", "SPECIALIST", "MODEL"], &[2, 1]);
        table.row(["0a1b2c3d".into(), "obligations-scanner".into(), "acme/very-long-model-name".into()]);
        table.row(["4e5f6a7b".into(), "r\u{e9}viewer\n\u{1b}[31m".into(), String::new()]);
        let mut out = anstream::StripStream::new(Vec::new());
        table.write(&mut out, width).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_cut_to_the_screen() {
        insta::assert_snapshot!(shown(None), @r"
        JOB       SPECIALIST           MODEL
        0a1b2c3d  obligations-scanner  acme/very-long-model-name
        4e5f6a7b  réviewer  [31m
        ");
        insta::assert_snapshot!(shown(Some(40)), @r"
        JOB       SPECIALIST           MODEL
        0a1b2c3d  obligations-scanner  acme/ver…
        4e5f6a7b  réviewer  [31m
        ");
        insta::assert_snapshot!(shown(Some(30)), @r"
        JOB       SPECIALIST    MODEL
        0a1b2c3d  obligations…  acme/…
        4e5f6a7b  réviewer  […
        ");
        for width in 0..80 {
            assert!(shown(Some(width)).lines().all(|line| line.chars().count() <= width), "{width}");
        }
    }
}
