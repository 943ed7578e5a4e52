// What lies over the points: images, class names, rings around the hovered and the pinned point, and the lasso.
const MAX_IMAGES = 150; // visible points that are drawn as images

function drawOverlay(map) {
  const { ink, view } = map;
  ink.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  ink.clearRect(0, 0, view.width, view.height);
  if (about.thumbnails && map.visible <= MAX_IMAGES) drawImages(map);
  if ($("show-names").checked && colorColumn && colorColumn.names) drawClassNames(map);
  if (pinned >= 0) drawRing(map, pinned, 3);
  if (hovered >= 0) drawRing(map, hovered, 2);
  if (map.lasso) drawLasso(map);
}

// Call when only the rings have changed.
function drawOverlays() {
  if (!requested) for (const map of maps) if (map.now.x) drawOverlay(map);
}

// The fewer points are visible, the larger their images.
function drawImages(map) {
  const { width, height } = about.thumbnails, { ink } = map;
  const tall = Math.max(28, Math.min(96, 320 / Math.sqrt(Math.max(1, map.visible)))), wide = (tall * width) / height;
  ink.imageSmoothingEnabled = height >= tall;
  for (let i = 0; i < n; i++) {
    if (highlighted && !highlighted[i]) continue;
    const [px, py] = map.toScreen(i);
    if (!map.isOnScreen(px, py, tall)) continue;
    const sheet = sheetOf(i, redraw);
    if (!sheet || !sheet.complete) continue;
    const [sx, sy] = sheetCorner(i);
    ink.drawImage(sheet, sx, sy, width, height, px - wide / 2, py - tall / 2, wide, tall);
    ink.strokeStyle = cssColor(colors[i]);
    ink.lineWidth = 2;
    ink.strokeRect(px - wide / 2, py - tall / 2, wide, tall);
  }
}

function drawRing(map, i, thickness) {
  const { ink, view } = map, [px, py] = map.toScreen(i);
  ink.beginPath();
  ink.arc(px, py, pointRadius(map) / view.ratio + 4, 0, 2 * Math.PI);
  ink.lineWidth = thickness;
  ink.strokeStyle = cssVariable("--ink");
  ink.stroke();
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
