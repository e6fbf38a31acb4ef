def rare():
    pass
