def helper():
    return sum(range(1000))

@profile
def wanted():
    helper()
    return helper()

def unwanted():
    return helper()

unwanted()
wanted()
