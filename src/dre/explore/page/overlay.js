// What lies over the points: images, class names, neighbors of the pinned point, rings and the lasso.
const MAX_IMAGES = 150; // visible points that are drawn as images
const NEAR = { map: "--near-map", data: "--near-data", both: "--near-both" }; // colors of neighbors

function drawOverlay(map) {
  const { ink, view } = map;
  ink.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  ink.clearRect(0, 0, view.width, view.height);
  if (showsImages(map)) drawImages(map);
  for (const layer of layers) layer.draw(map);
  if (showsNames() && !showsImages(map)) drawClassNames(map);
  drawRings(map);
  if (map.lasso) drawLasso(map);
  $("marks").hidden = pinned < 0 || !neighborsShown || !neighborsShown.data.length;
}

function drawRings(map) {
  if (pinned >= 0) {
    if (neighborsShown) drawNeighbors(map);
    drawRing(map, pinned, 5, 3);
  }
  if (hovered >= 0 && hovered !== pinned) drawRing(map, hovered, 4, 2);
}

// Call when only the rings or the neighbors have changed.
function drawOverlays() {
  if (!requested) for (const map of maps) if (map.look) drawOverlay(map);
}

const showsImages = (map) => Boolean(about.thumbnails) && map.visible <= MAX_IMAGES && !densityOn();
const showsNames = () => Boolean($("show-names").checked && colorColumn && colorColumn.kind === "class" && colorColumn.values);

// Ids on the screen with their pixels, within a margin.
function onScreen(map, margin) {
  const { ids, split } = baseOrder(map), found = [];
  for (let k = split; k < ids.length; k++) {
    const [px, py] = map.toScreen(ids[k]);
    if (map.isOnScreen(px, py, margin)) found.push([ids[k], px, py]);
  }
  return found;
}

// The fewer points are visible, the larger their images.
const imageHeight = (map) => Math.max(28, Math.min(96, 320 / Math.sqrt(Math.max(1, map.visible))));

function drawImages(map) {
  const { width, height } = about.thumbnails, { ink } = map, tall = imageHeight(map), wide = (tall * width) / height;
  ink.imageSmoothingEnabled = height >= tall;
  ink.lineWidth = 2;
  for (const [i, px, py] of onScreen(map, tall)) {
    const sheet = sheetOf(i, redraw);
    if (!sheet || !sheet.complete) continue;
    const [sx, sy] = sheetCorner(i);
    ink.drawImage(sheet, sx, sy, width, height, px - wide / 2, py - tall / 2, wide, tall);
    ink.strokeStyle = cssColor(colors[i]);
    ink.strokeRect(px - wide / 2, py - tall / 2, wide, tall);
  }
}

// A ring that is legible on points of any color: the ink of the theme on a halo of its paper.
function drawRing(map, i, distance, thickness) {
  const { ink } = map, [px, py] = map.toScreen(i);
  for (const [width, color] of [[thickness + 3, "--paper"], [thickness, "--ink"]]) {
    ink.beginPath();
    ink.arc(px, py, map.look.radius + distance, 0, 2 * Math.PI);
    ink.lineWidth = width;
    ink.strokeStyle = cssVariable(color);
    ink.stroke();
  }
}

// Rows near the pinned one on the map, in the data, or in both.
function neighborKinds() {
  const onMap = new Set(neighborsShown.map), inData = new Set(neighborsShown.data);
  return [...new Set([...onMap, ...inData])].map((i) => [i, onMap.has(i) && inData.has(i) ? "both" : onMap.has(i) ? "map" : "data"]);
}

// Thin lines from the pinned point; circles near on the map, squares near in the data, filled circles in both.
function drawNeighbors(map) {
  const { ink } = map, [px, py] = map.toScreen(pinned), size = map.look.radius + 3;
  for (const [i, kind] of neighborKinds()) {
    const [qx, qy] = map.toScreen(i);
    ink.strokeStyle = ink.fillStyle = cssVariable(NEAR[kind]);
    ink.lineWidth = 1;
    ink.setLineDash(kind === "data" ? [4, 3] : []);
    ink.globalAlpha = 0.7;
    ink.beginPath();
    ink.moveTo(px, py);
    ink.lineTo(qx, qy);
    ink.stroke();
    ink.setLineDash([]);
    ink.globalAlpha = 1;
    ink.lineWidth = 2;
    ink.beginPath();
    if (kind === "data") ink.rect(qx - size, qy - size, 2 * size, 2 * size);
    else ink.arc(qx, qy, size, 0, 2 * Math.PI);
    ink.stroke();
    if (kind === "both") {
      ink.globalAlpha = 0.35;
      ink.fill();
      ink.globalAlpha = 1;
    }
  }
}

function drawLasso({ ink, lasso }) {
  const accent = cssVariable("--accent");
  ink.beginPath();
  lasso.forEach(([px, py], k) => (k ? ink.lineTo(px, py) : ink.moveTo(px, py)));
  ink.closePath();
  ink.globalAlpha = 0.12;
  ink.fillStyle = accent;
  ink.fill();
  ink.globalAlpha = 1;
  ink.lineWidth = 1.5;
  ink.setLineDash([5, 4]);
  ink.strokeStyle = accent;
  ink.stroke();
  ink.setLineDash([]);
}
