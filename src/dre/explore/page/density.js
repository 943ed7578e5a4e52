// The density of the points as a heat map, at this zoom: counted in small cells, smoothed, and colored by theme.
const DENSITY_CELL = 3; // pixels
const DENSITY_BLUR = 2; // cells to each side, three times, which is close to a Gaussian of 8 pixels
const DENSITY_POWER = 0.42; // keeps thin regions visible beside dense ones
const DENSITY_COLORS = {
  light: ["#ffffff", "#dcebf7", "#a6cbe6", "#5b9fd0", "#2468ad", "#173a73", "#0b1c40"],
  dark: ["#14161a", "#2b1f4a", "#5f2b74", "#a13a76", "#de5a5d", "#f79a4f", "#fbe8a6"],
};
let isDensityShown = false;
const densityOn = () => isDensityShown;
const densityCanvas = document.createElement("canvas");

function setDensity(on) {
  isDensityShown = Boolean(on);
  $("density").setAttribute("aria-pressed", String(isDensityShown));
  $("density-scale").hidden = !isDensityShown;
  redraw();
  stateChanged();
}

const densityColors = () => DENSITY_COLORS[isDark() ? "dark" : "light"];

// Follows the theme.
function showDensityScale() {
  $("density-scale").querySelector(".ramp").style.background = `linear-gradient(to right, ${densityColors().join(", ")})`;
}

// Points per cell, of the highlighted ones if there are some; a margin of cells takes in what is blurred into the view.
function countCells(map, { ids, split }, columns, lines, margin) {
  const counts = new Float32Array(columns * lines), { view, now: { x, y } } = map;
  const scale = view.scale / DENSITY_CELL, x0 = view.width / 2 / DENSITY_CELL - view.x * scale + margin;
  const y0 = view.height / 2 / DENSITY_CELL + view.y * scale + margin;
  for (let k = split; k < ids.length; k++) {
    const column = Math.floor(x[ids[k]] * scale + x0), line = Math.floor(y0 - y[ids[k]] * scale);
    if (column >= 0 && line >= 0 && column < columns && line < lines) counts[line * columns + column]++;
  }
  return counts;
}

// The mean of 2 · reach + 1 cells along rows; the result is turned, so that a second call goes along columns.
function blurAndTurn(from, columns, lines, reach) {
  const to = new Float32Array(from.length), share = 1 / (2 * reach + 1);
  for (let line = 0; line < lines; line++) {
    const start = line * columns;
    let sum = 0;
    for (let k = 0; k < reach; k++) sum += from[start + k];
    for (let k = 0; k < columns; k++) {
      if (k + reach < columns) sum += from[start + k + reach];
      if (k - reach > 0) sum -= from[start + k - reach - 1];
      to[k * lines + line] = sum * share;
    }
  }
  return to;
}

function smooth(counts, columns, lines) {
  let smoothed = counts;
  for (let pass = 0; pass < 3; pass++) {
    smoothed = blurAndTurn(blurAndTurn(smoothed, columns, lines, DENSITY_BLUR), lines, columns, DENSITY_BLUR);
  }
  return smoothed;
}

function drawDensity(map, list) {
  const { view, context } = map, margin = 3 * DENSITY_BLUR;
  const columns = Math.ceil(view.width / DENSITY_CELL) + 2 * margin, lines = Math.ceil(view.height / DENSITY_CELL) + 2 * margin;
  const values = smooth(countCells(map, list, columns, lines, margin), columns, lines), ramp = colorRamp(densityColors());
  let most = 0;
  for (const value of values) if (value > most) most = value;
  const picture = new ImageData(columns, lines), pixels = new Uint32Array(picture.data.buffer);
  for (let cell = 0; cell < values.length; cell++) {
    const share = most ? Math.min(1, Math.max(0, values[cell] / most)) : 0;
    pixels[cell] = (0xff000000 | ramp[Math.round(255 * Math.pow(share, DENSITY_POWER))]) >>> 0;
  }
  densityCanvas.width = columns;
  densityCanvas.height = lines;
  densityCanvas.getContext("2d").putImageData(picture, 0, 0);
  const size = DENSITY_CELL * view.ratio;
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(densityCanvas, -margin * size, -margin * size, columns * size, lines * size);
  showDensityScale();
}
