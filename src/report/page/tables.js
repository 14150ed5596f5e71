// The switch between light and dark, and tables that sort when their heads are clicked.
(function () {
  var root = document.documentElement, dark = document.getElementById('dark');
  function isDark() {
    var word = root.style.colorScheme;
    return word ? word === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  dark.hidden = false;
  dark.addEventListener('click', function () { root.style.colorScheme = isDark() ? 'light' : 'dark'; });

  function valueOf(row, column, numeric) {
    var cell = row.cells[column], text = cell.dataset.v || cell.textContent;
    return numeric ? parseFloat(text.replace(/,/g, '')) : text;
  }
  // what is not a number stands last, whatever the direction; equal rows keep their order
  function compare(a, b, down) {
    var noA = a !== a || a === '-', noB = b !== b || b === '-';
    if (noA || noB) return noA - noB;
    return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
  }
  function sort(head) {
    var table = head.closest('table'), body = table.tBodies[0], column = head.cellIndex;
    var numeric = head.classList.contains('n');
    var down = head.hasAttribute('aria-sort') ? head.getAttribute('aria-sort') === 'ascending' : numeric;
    var rows = Array.from(body.rows).map(function (row) { return [valueOf(row, column, numeric), row]; });
    rows.sort(function (a, b) { return compare(a[0], b[0], down); });
    Array.from(table.tHead.rows[0].cells).forEach(function (other) { other.removeAttribute('aria-sort'); });
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    rows.forEach(function (row) { body.appendChild(row[1]); });
  }
  document.querySelectorAll('thead th').forEach(function (head) {
    head.classList.add('sorts');
    head.tabIndex = 0;
    head.addEventListener('click', function () { sort(head); });
    head.addEventListener('keydown', function (event) {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(head); }
    });
  });
})();
