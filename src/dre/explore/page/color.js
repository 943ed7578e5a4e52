// The column that colors the points, classes or a scale, and its legend, where classes can be picked.
const GRAY = 0xb8aca6; // 0xBBGGRR
let colorColumn = null;
let pickedClasses = null; // codes of the classes that were clicked in the legend; null if none was

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
const colorsOf = (column) => (isDark() ? column.dark : column.colors);

function classColors(column) {
  return column.names.map((_, code) => (code < column.colors.length ? parseHex(column.colors[code]) : GRAY));
}

function colorBy(column) {
  colorColumn = column;
  pickedClasses = null;
  drawOrder = shuffled;
  if (column && column.lowOnTop) drawOrder = shuffled.slice().sort((a, b) => column.values[b] - column.values[a]);
  updateColors();
  showLegend();
  showSelection();
  updateHighlight();
}

function updateColors() {
  const column = colorColumn;
  if (!column) {
    colors.fill(parseHex("#2f6fb3"));
  } else if (column.scale) {
    const ramp = colorRamp(colorsOf(column)), step = 255 / (column.high - column.low);
    for (let i = 0; i < n; i++) {
      const position = (column.values[i] - column.low) * step;
      colors[i] = Number.isNaN(position) ? GRAY : ramp[Math.max(0, Math.min(255, Math.round(position)))];
    }
  } else {
    const table = classColors(column);
    for (let i = 0; i < n; i++) colors[i] = table[column.values[i]];
  }
}

function showLegend() {
  const legend = $("legend"), column = colorColumn;
  legend.replaceChildren();
  $("show-names").parentElement.hidden = !column || column.scale;
  if (column) legend.append(...(column.scale ? scaleLegend(column) : classLegend(column)));
}

function scaleLegend(column) {
  const bar = document.createElement("div"), ends = document.createElement("div");
  bar.className = "ramp";
  bar.style.background = `linear-gradient(to right, ${colorsOf(column).join(", ")})`;
  ends.className = "ends";
  for (const end of [column.low, column.high]) {
    const label = document.createElement("span");
    label.textContent = String(Number(end.toPrecision(3)));
    ends.append(label);
  }
  return [bar, ends];
}

function classLegend(column) {
  const table = classColors(column), counts = new Uint32Array(column.names.length);
  for (let i = 0; i < n; i++) counts[column.values[i]]++;
  const colored = column.names.slice(0, column.colors.length), gray = column.names.slice(column.colors.length);
  const entries = colored.map((name, code) => classButton(name, code, table[code], counts[code]));
  if (gray.length) {
    const rest = document.createElement("p");
    rest.className = "quiet";
    rest.textContent = gray.length > 1 ? `${gray.length.toLocaleString("en")} smaller classes in gray` : `${gray[0]} in gray`;
    entries.push(rest);
  }
  return entries;
}

function classButton(name, code, color, count) {
  const button = document.createElement("button"), dot = document.createElement("span");
  const label = document.createElement("span"), number = document.createElement("span");
  button.type = "button";
  button.setAttribute("aria-pressed", "true");
  button.title = `Click to show only ${name}, shift-click to add or remove it`;
  dot.className = "dot";
  dot.style.background = cssColor(color);
  label.className = "name";
  label.textContent = name;
  number.className = "count";
  number.textContent = count.toLocaleString("en");
  button.append(dot, label, number);
  button.addEventListener("click", (event) => pickClass(code, event.shiftKey));
  return button;
}

// A click picks a class alone, or no class if it was alone already; with shift it adds or removes the class.
function pickClass(code, add) {
  const before = pickedClasses || new Set();
  const wasAlone = before.size === 1 && before.has(code);
  const picked = add ? new Set(before) : new Set();
  if (add && before.has(code)) picked.delete(code);
  else if (!wasAlone || add) picked.add(code);
  pickedClasses = picked.size ? picked : null;
  [...$("legend").querySelectorAll("button")].forEach((button, each) => {
    button.setAttribute("aria-pressed", String(!pickedClasses || pickedClasses.has(each)));
  });
  updateHighlight();
}
