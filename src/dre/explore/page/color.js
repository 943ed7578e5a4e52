// The column that colors the points, as classes or on a scale.
const GRAY = 0xb8aca6; // 0xBBGGRR
const PLAIN = "#2f6fb3";
let colorColumn = null;
let colorScale = "linear"; // of a column of numbers or dates

function parseHex(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16);
}

// 256 colors from the low end of a scale to the high end.
function colorRamp(stops) {
  const parts = stops.map((hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const position = (i / 255) * (parts.length - 1), from = Math.min(parts.length - 2, Math.floor(position)), share = position - from;
    const [r, g, b] = [0, 1, 2].map((k) => Math.round(parts[from][k] * (1 - share) + parts[from + 1][k] * share));
    return (b << 16) | (g << 8) | r;
  });
}

const isDark = () => document.documentElement.classList.contains("dark");
const colorsOf = (column) => (isDark() && column.dark ? column.dark : column.colors);
const isScale = (column) => column.kind === "number" || column.kind === "date";

function classColors(column) {
  const known = colorsOf(column), unnamed = column.missing ? column.names.length - 1 : -1;
  return column.names.map((_, code) => (code < known.length && code !== unnamed ? parseHex(known[code]) : GRAY));
}

// The scale of a column is remembered while another column colors the points.
function colorBy(column, scale = null) {
  colorColumn = column;
  if (column && isScale(column)) {
    const known = scaleNames(column), asked = scale || column.chosenScale || column.scale;
    colorScale = column.chosenScale = known.includes(asked) ? asked : known[0];
  }
  drawOrder = shuffled;
  if (column && column.lowOnTop) drawOrder = shuffled.slice().sort((a, b) => column.values[b] - column.values[a]);
  updateColors();
  showLegend();
  describeMap();
  stateChanged();
}

function updateColors() {
  const column = colorColumn;
  if (!column) {
    colors.fill(parseHex(PLAIN));
  } else if (isScale(column)) {
    const ramp = colorRamp(colorsOf(column)), position = positionOn(column, colorScale), { values } = column;
    for (let i = 0; i < n; i++) {
      const share = position(values[i]);
      colors[i] = Number.isNaN(share) ? GRAY : ramp[Math.round(share * 255)];
    }
  } else {
    const table = classColors(column);
    for (let i = 0; i < n; i++) colors[i] = table[column.values[i]];
  }
  pointsChanged();
  showRows(); // lists and the card show colors too
  if (pinned >= 0) showPinned();
}
