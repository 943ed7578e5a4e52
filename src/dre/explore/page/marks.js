// What lies over the points: names of classes, images when few points are left, the loop of the lasso, a ring around the point that is shown.
const over = $("over"), ink = over.getContext("2d");
const NAMED = 40; // classes whose names are written
const PICTURED = 150; // points whose images are drawn in their place
let loop = null, ringed = -1;

function paintOver(drawn) {
  ink.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  ink.clearRect(0, 0, view.width, view.height);
  if (about.thumbnails && drawn <= PICTURED) paintImages(drawn);
  if ($("marks").checked && colouredBy && !colouredBy.scale) paintNames();
  if (ringed >= 0) paintRing();
  if (loop) paintLoop();
}

function isSeen(px, py, margin) {
  return px > -margin && py > -margin && px < view.width + margin && py < view.height + margin;
}

// The fewer, the larger.
function paintImages(drawn) {
  const { width, height } = about.thumbnails, tall = Math.max(28, Math.min(96, 320 / Math.sqrt(Math.max(1, drawn)))), wide = (tall * width) / height;
  ink.imageSmoothingEnabled = height >= tall;
  for (let i = 0; i < n; i++) {
    if (lit && !lit[i]) continue;
    const px = across(now.x[i]), py = down(now.y[i]);
    if (!isSeen(px, py, tall)) continue;
    const sheet = sheetOf(i, redraw);
    if (!sheet || !sheet.complete) continue;
    const [sx, sy] = cornerOf(i);
    ink.drawImage(sheet, sx, sy, width, height, px - wide / 2, py - tall / 2, wide, tall);
    ink.strokeStyle = cssOf(tint[i]);
    ink.lineWidth = 2;
    ink.strokeRect(px - wide / 2, py - tall / 2, wide, tall);
  }
}

// In the middle of each class, as the median of a few hundred of its points; where two would overlap, the larger class is named.
function paintNames() {
  const { names, values } = colouredBy;
  if (names.length > NAMED) return;
  const spots = names.map(() => ({ x: [], y: [], count: 0 })), stride = Math.max(1, Math.floor(n / 20000));
  for (let i = 0; i < n; i += stride) {
    if (lit && !lit[i]) continue;
    const spot = spots[values[i]];
    spot.count++;
    if (spot.x.length < 500) {
      spot.x.push(now.x[i]);
      spot.y.push(now.y[i]);
    }
  }
  const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const written = [];
  ink.font = "600 14px system-ui, 'DejaVu Sans', sans-serif";
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  const largest = spots.map((_, code) => code).sort((a, b) => spots[b].count - spots[a].count);
  for (const code of largest) {
    if (!spots[code].x.length) continue;
    const px = across(middle(spots[code].x)), py = down(middle(spots[code].y));
    const said = names[code].length > 28 ? `${names[code].slice(0, 27)}…` : names[code];
    const wide = ink.measureText(said).width / 2 + 4;
    if (!isSeen(px, py, 0) || written.some((w) => Math.abs(w.px - px) < w.wide + wide && Math.abs(w.py - py) < 18)) continue;
    written.push({ px, py, wide });
    ink.lineWidth = 4;
    ink.strokeStyle = cssOf(ground);
    ink.strokeText(said, px, py);
    ink.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    ink.fillText(said, px, py);
  }
}

function paintRing() {
  ink.beginPath();
  ink.arc(across(now.x[ringed]), down(now.y[ringed]), radius() / view.ratio + 4, 0, 2 * Math.PI);
  ink.lineWidth = 2;
  ink.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  ink.stroke();
}

function paintLoop() {
  ink.beginPath();
  loop.forEach(([px, py], at) => (at ? ink.lineTo(px, py) : ink.moveTo(px, py)));
  ink.closePath();
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
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
