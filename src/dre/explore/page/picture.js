// The picture as a file, as it is shown, with its title and legend: PNG at twice the resolution, or SVG with text as text.
const PICTURE_RATIO = 2; // pixels of a PNG for each pixel of the screen
const MAX_CIRCLES = 20000; // visible points that an SVG draws as circles; more become an image
const PICTURE_HEAD = 52, PICTURE_SIDE = 230, PICTURE_MARGIN = 16; // pixels
const LEGEND_LINE = 19;
const PICTURE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

// A map with canvases of its own, which can be drawn at another resolution.
function copyOf(map, ratio) {
  const copy = Object.create(map), canvas = document.createElement("canvas"), overlay = document.createElement("canvas");
  for (const each of [canvas, overlay]) {
    each.width = Math.round(map.view.width * ratio);
    each.height = Math.round(map.view.height * ratio);
  }
  const context = canvas.getContext("2d", { alpha: false }), ink = overlay.getContext("2d");
  return Object.assign(copy, { canvas, context, overlay, ink, view: { ...map.view, ratio } });
}

// XML has no control characters.
const xmlText = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");

function hexColor(color) {
  return `#${[color, color >> 8, color >> 16].map((part) => (part & 255).toString(16).padStart(2, "0")).join("")}`;
}

function svgText(x, y, text, style = {}) {
  return makeSvg("text", { x, y, "font-size": 12, fill: cssVariable("--ink"), ...style }, xmlText(text));
}

// Class names and caption of a map as text.
function mapTexts(map) {
  const halo = { stroke: cssVariable("--paper"), "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke" };
  const names = showsNames() && !showsImages(map) ? placedNames(map).map(({ row, text, dx, dy }) => {
    const [px, py] = map.toScreen(row);
    const style = { ...halo, "font-size": 13, "font-weight": 600, "text-anchor": "middle" };
    return svgText((px + dx).toFixed(1), (py + dy + 4.5).toFixed(1), text, style);
  }) : [];
  const caption = map.element.querySelector(".caption");
  if (maps.length > 1) names.push(svgText(map.view.width - 18, map.view.height - 17, caption.textContent, { ...halo, "font-weight": 600, "text-anchor": "end" }));
  return names;
}

// The visible points as circles, in the order in which they are drawn.
function circles(map) {
  const { ids, split } = baseOrder(map), { look } = map, found = [];
  ids.forEach((i, k) => {
    const [px, py] = map.toScreen(i), { radius, opacity } = k < split ? look.dimmed : look;
    if (!map.isOnScreen(px, py, radius)) return;
    const fill = hexColor(k < split ? dimmedColor : map.tints[i]);
    found.push(makeSvg("circle", { cx: px.toFixed(1), cy: py.toFixed(1), r: radius.toFixed(2), fill, "fill-opacity": opacity.toFixed(2) }));
  });
  return found;
}

function countOnScreen(map) {
  const { ids } = baseOrder(map);
  let count = 0;
  for (const i of ids) if (map.isOnScreen(...map.toScreen(i))) count++;
  return count;
}

function embedded(canvas, { width, height }) {
  return makeSvg("image", { width, height, href: canvas.toDataURL("image/png") });
}

// The points of a map, then the images and rings over them, then text.
function mapContent(map, asVectors) {
  const copy = copyOf(map, PICTURE_RATIO), isVector = asVectors && !densityOn() && countOnScreen(map) <= MAX_CIRCLES;
  const layers = [];
  if (isVector) layers.push(makeSvg("g", {}, ...circles(map)));
  else drawPoints(copy, 0, new CanvasPoints()); // a graphics card may not have so large a canvas
  copy.look = map.look;
  copy.ink.scale(PICTURE_RATIO, PICTURE_RATIO);
  if (showsImages(map)) drawImages(copy);
  drawRings(copy);
  if (!isVector) copy.context.drawImage(copy.overlay, 0, 0);
  if (asVectors) layers.push(embedded(isVector ? copy.overlay : copy.canvas, map.view));
  return { canvas: copy.canvas, layers };
}

function legendLines(width, height) {
  if (densityOn()) return rampLegend("density", densityColors(), [[0, "few"], [1, "many points"]], width);
  if (!colorColumn) return [];
  if (isScale(colorColumn)) return rampLegend(colorColumn.name, colorsOf(colorColumn), spaced(scaleTicks(colorColumn, colorScale), 0.2), width);
  const table = classColors(colorColumn), counts = countClasses(colorColumn, highlighted), room = Math.max(1, Math.floor(height / LEGEND_LINE) - 2);
  const codes = [...counts.keys()].filter((code) => counts[code]), listed = codes.length > room ? codes.sort((a, b) => counts[b] - counts[a]).slice(0, room) : codes;
  const lines = listed.flatMap((code, k) => [
    makeSvg("circle", { cx: 6, cy: (k + 1) * LEGEND_LINE + 6, r: 5, fill: cssColor(table[code]) }),
    svgText(18, (k + 1) * LEGEND_LINE + 10, shorten(colorColumn.names[code], 24)),
    svgText(width, (k + 1) * LEGEND_LINE + 10, grouped(counts[code]), { fill: cssVariable("--quiet"), "text-anchor": "end" }),
  ]);
  const rest = codes.length - listed.length;
  if (rest) lines.push(svgText(18, (listed.length + 1) * LEGEND_LINE + 10, `and ${grouped(rest)} more`, { fill: cssVariable("--quiet") }));
  return [svgText(0, 10, shorten(colorColumn.name, 32), { "font-weight": 600 }), ...lines];
}

function rampLegend(name, stops, ticks, width) {
  const gradient = makeSvg("linearGradient", { id: "ramp" }, ...stops.map((color, k) => makeSvg("stop", { offset: k / (stops.length - 1), "stop-color": color })));
  const anchor = (share) => (share < 0.1 ? "start" : share > 0.9 ? "end" : "middle");
  return [
    svgText(0, 10, shorten(name, 32), { "font-weight": 600 }), makeSvg("defs", {}, gradient),
    makeSvg("rect", { y: 20, width, height: 12, rx: 4, fill: "url(#ramp)" }),
    ...ticks.map(([share, label]) => svgText(share * width, 47, label, { fill: cssVariable("--quiet"), "text-anchor": anchor(share) })),
  ];
}

// How many points are shown, and by which filters.
function pictureNote() {
  if (!highlighted) return [plural(n, "point"), ...layers.map((layer) => layer.note())].filter(Boolean).join(", ");
  return `${grouped(countOf(highlighted))} of ${plural(n, "point")}: ${[...filters.values()].map(({ label }) => label).join("; ")}`;
}

// All of the picture but the raster images of points, which come with their places, if it is to have none inside.
function composePicture(asVectors) {
  const area = $("maps").getBoundingClientRect(), boxes = maps.map((map) => ({ x: map.element.offsetLeft, y: map.element.offsetTop + PICTURE_HEAD }));
  const contents = maps.map((map) => mapContent(map, asVectors)), hasLegend = colorColumn || densityOn();
  const width = Math.round(area.width + (hasLegend ? PICTURE_SIDE : 0)), height = Math.round(area.height + PICTURE_HEAD);
  const svg = makeSvg(
    "svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": PICTURE_FONT },
    asVectors ? makeSvg("rect", { width, height, fill: cssVariable("--paper") }) : null,
    ...maps.map((map, k) => makeSvg("svg", { ...boxes[k], width: map.view.width, height: map.view.height }, ...contents[k].layers, ...mapTexts(map))),
    svgText(PICTURE_MARGIN, 26, shorten(about.title, 110), { "font-size": 17, "font-weight": 600 }),
    svgText(PICTURE_MARGIN, 45, shorten(pictureNote(), 150), { fill: cssVariable("--quiet") }),
    hasLegend ? makeSvg("g", { transform: `translate(${Math.round(area.width) + PICTURE_MARGIN} ${PICTURE_HEAD})` },
      ...legendLines(PICTURE_SIDE - 2 * PICTURE_MARGIN, area.height - PICTURE_HEAD)) : null,
  );
  return { svg, width, height, rasters: contents.map(({ canvas }, k) => ({ canvas, ...boxes[k], view: maps[k].view })) };
}

function pictureName(ending) {
  const name = about.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "map";
  return `${name}.${ending}`;
}

const svgBlob = (svg) => new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });

function exportSvg() {
  saveFile(svgBlob(composePicture(true).svg), pictureName("svg"));
}

// Points are drawn as pixels at this resolution; the text over them is an SVG, drawn as an image.
async function exportPng() {
  const { svg, width, height, rasters } = composePicture(false), canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  canvas.width = width * PICTURE_RATIO;
  canvas.height = height * PICTURE_RATIO;
  context.scale(PICTURE_RATIO, PICTURE_RATIO);
  context.fillStyle = cssVariable("--paper");
  context.fillRect(0, 0, width, height);
  for (const { canvas: raster, x, y, view } of rasters) context.drawImage(raster, x, y, view.width, view.height);
  const text = new Image(), url = URL.createObjectURL(svgBlob(svg));
  text.src = url;
  await text.decode();
  context.drawImage(text, 0, 0, width, height);
  URL.revokeObjectURL(url);
  saveFile(await new Promise((done) => canvas.toBlob(done, "image/png")), pictureName("png"));
}
