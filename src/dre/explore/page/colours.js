// What points are coloured by: classes or a scale, with a legend in which classes can be picked.
const GREY = 0xb8aca6; // 0xBBGGRR
let colouredBy = null;
let picked = null; // codes of classes that were picked in the legend

function bgr(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16);
}

function cssOf(colour) {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

// 256 colours from one end of a scale to the other.
function ramp(stops) {
  const parts = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (parts.length - 1), from = Math.min(parts.length - 2, Math.floor(at)), share = at - from;
    const [r, g, b] = [0, 1, 2].map((k) => Math.round(parts[from][k] * (1 - share) + parts[from + 1][k] * share));
    return (b << 16) | (g << 8) | r;
  });
}

const isDark = () => document.documentElement.classList.contains("dark");
const coloursOf = (column) => (isDark() ? column.dark : column.colours);

function classColours(column) {
  return column.names.map((_, code) => (code < column.colours.length ? bgr(column.colours[code]) : GREY));
}

function colourBy(column) {
  colouredBy = column;
  picked = null;
  order = shuffled;
  if (column && column.lowOnTop) order = shuffled.slice().sort((a, b) => column.values[b] - column.values[a]);
  tintAll();
  showLegend();
  showSelection();
  standOut();
}

function tintAll() {
  const column = colouredBy;
  if (!column) {
    tint.fill(bgr("#2f6fb3"));
  } else if (column.scale) {
    const table = ramp(coloursOf(column)), step = 255 / (column.high - column.low);
    for (let i = 0; i < n; i++) {
      const at = (column.values[i] - column.low) * step;
      tint[i] = Number.isNaN(at) ? GREY : table[Math.max(0, Math.min(255, Math.round(at)))];
    }
  } else {
    const table = classColours(column);
    for (let i = 0; i < n; i++) tint[i] = table[column.values[i]];
  }
}

function showLegend() {
  const legend = $("legend"), column = colouredBy;
  legend.replaceChildren();
  $("marks").parentElement.hidden = !column || column.scale;
  if (!column) return;
  if (column.scale) {
    const bar = document.createElement("div"), ends = document.createElement("div");
    bar.className = "ramp";
    bar.style.background = `linear-gradient(to right, ${coloursOf(column).join(", ")})`;
    ends.className = "ends";
    for (const end of [column.low, column.high]) {
      const told = document.createElement("span");
      told.textContent = String(Number(end.toPrecision(3)));
      ends.append(told);
    }
    legend.append(bar, ends);
    return;
  }
  const table = classColours(column), counts = new Uint32Array(column.names.length);
  for (let i = 0; i < n; i++) counts[column.values[i]]++;
  column.names.slice(0, column.colours.length).forEach((name, code) => legend.append(classButton(name, code, table[code], counts[code])));
  if (column.names.length > column.colours.length) {
    const rest = document.createElement("p");
    rest.className = "quiet";
    const others = column.names.slice(column.colours.length);
    rest.textContent = others.length > 1 ? `${others.length.toLocaleString("en")} smaller classes in grey` : `${others[0]} in grey`;
    legend.append(rest);
  }
}

function classButton(name, code, colour, count) {
  const button = document.createElement("button"), dot = document.createElement("span");
  const said = document.createElement("span"), many = document.createElement("span");
  button.type = "button";
  button.setAttribute("aria-pressed", "true");
  button.title = `Only ${name}; with shift, as well`;
  dot.className = "dot";
  dot.style.background = cssOf(colour);
  said.className = "name";
  said.textContent = name;
  many.className = "many";
  many.textContent = count.toLocaleString("en");
  button.append(dot, said, many);
  button.addEventListener("click", (event) => pick(code, event.shiftKey));
  return button;
}

function pick(code, further) {
  const before = picked || new Set();
  const alone = before.size === 1 && before.has(code);
  picked = further ? new Set(before) : new Set();
  if (further && before.has(code)) picked.delete(code);
  else if (!alone || further) picked.add(code);
  if (picked.size === 0) picked = null;
  [...$("legend").querySelectorAll("button")].forEach((button, at) => {
    button.setAttribute("aria-pressed", String(!picked || picked.has(at)));
  });
  standOut();
}
