//! A plot with two logarithmic axes.

use anyhow::{Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, from left to right; all numbers are positive.
    pub points: Vec<(f64, f64)>,
}

/// Colours that can be told apart on a white and on a black ground.
const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
];

/// The drawing.
///
/// # Errors
/// When there is nothing to draw.
pub fn svg(title: &str, unit: &str, lines: &[Line]) -> Result<String> {
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|line| line.points.iter().copied()).collect();
    let span = |numbers: &mut dyn Iterator<Item = f64>| {
        let (least, most) = numbers.fold((f64::MAX, 0.0f64), |(least, most), number| {
            (least.min(number), most.max(number))
        });
        (most > 0.0).then(|| 10f64.powf(least.log10().floor())..10f64.powf(most.log10().ceil() + 0.001))
    };
    let x = span(&mut points.iter().map(|(x, _)| *x)).context("a plot of nothing")?;
    let y = span(&mut points.iter().map(|(_, y)| y.max(0.01))).context("a plot of nothing")?;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (860, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(650);
        let mut chart = ChartBuilder::on(&left)
            .caption(title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(unit)
            .y_desc("ms")
            .label_style(("sans-serif", 16))
            .axis_desc_style(("sans-serif", 17))
            .x_label_formatter(&|value| format!("{value}"))
            .y_label_formatter(&|value| format!("{value}"))
            .light_line_style(RGBColor(235, 235, 235))
            .draw()?;
        for (index, line) in lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let points: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| (*x, y.max(0.01))).collect();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
            // A legend of its own: lines cross, and one over them would hide some.
            let height = 60 + 24 * i32::try_from(index).unwrap_or(0);
            right.draw(&Rectangle::new([(0, height - 2), (18, height + 2)], colour.filled()))?;
            let style = ("sans-serif", 17)
                .into_font()
                .color(&BLACK)
                .pos(Pos::new(HPos::Left, VPos::Center));
            right.draw(&Text::new(line.name.clone(), (26, height), style))?;
        }
        area.present()?;
    }
    Ok(text)
}
